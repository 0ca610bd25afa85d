#!/bin/bash
# The EPs on a real NVIDIA GPU, between a Vulkan producer and consumer, inside a real ONNX Runtime.
#
#   bench/gpu/run.sh [FRAMES] [HALF_BYTES]
#
# needs a GPU with its driver, the Vulkan loader, gcc, make and python3 with the package onnxruntime;
# ORT_LIBRARY names another libonnxruntime.so. Uses the generated sources in generated/; no network.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
generated=${GENERATED:-$root/generated}
build=${BUILD:-$(mktemp -d)}
frames=${1:-1000}
half=${2:-1048576}
cc=${CC:-gcc}

say() { printf '\n== %s\n' "$*"; }

ort=${ORT_LIBRARY:-$(python3 - <<'PY'
import glob, os, importlib.util
spec = importlib.util.find_spec("onnxruntime")
found = sorted(glob.glob(os.path.join(os.path.dirname(spec.origin), "capi", "libonnxruntime.so*"))) if spec else []
print(found[-1] if found else "")
PY
)}
[ -n "$ort" ] && [ -f "$ort" ] || { echo "no libonnxruntime.so: set ORT_LIBRARY"; exit 2; }

say "machine"
date -u
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "nvidia-smi does not answer"
ls -l "$ort"
"$cc" --version | head -1
uname -sr

# run_ep EP LABEL ANY_GPU LEND: builds the EP and the program, and runs it twice.
run_ep() {
  local ep=$1 label=$2 any=$3 lend=$4 name
  say "$label: build"
  make -s -j4 -C "$generated/c/$ep" CC="$cc" BUILD="$build/$ep" || return 1
  name=$(sed -n 's/^#define EP_NAME "\(.*\)"/\1/p' "$generated/c/$ep/ep_config.h")
  "$cc" -std=c11 -O2 -g -Wall -Wextra -DEP_NAME_UNDER_TEST="\"$name\"" -I"$generated/include" \
    -I"$generated/c/host" -I"$generated/c/vulkan" -I"$root/tests/c" -I"$here" "$here/frames.c" \
    "$here/vulkan_app.c" "$here/loan.c" "$root/tests/c/client.c" -o "$build/frames" -ldl || return 1
  say "$label: $frames frames of $half bytes"
  timeout 120 "$build/frames" "$ort" "$build/$ep/libort_interop_$ep.so" "$name" "$frames" "$half" "$any" 0 "$lend" || return 1
  say "$label: the EP's copies, counted over 50 frames"
  timeout 120 "$build/frames" "$ort" "$build/$ep/libort_interop_$ep.so" "$name" 50 "$half" "$any" 1 "$lend" || return 1
}

failed=0
run_ep cuda "cuda EP" 0 0 || { echo "cuda: FAILED"; failed=1; }
run_ep vulkan "vulkan EP" 0 0 || { echo "vulkan: FAILED"; failed=1; }
run_ep vulkan "vulkan EP on the application's device and queue" 0 1 || { echo "vulkan, lent: FAILED"; failed=1; }

cuda_home=${CUDA_HOME:-/usr/local/cuda}
if [ -f "$cuda_home/include/cuda.h" ]; then
  say "HIP forwarded to CUDA: build"
  soname=$(sed -n 's/.*soname,\(.*\)/\1/p' "$generated/c/mock_hip/Makefile")
  mkdir -p "$build/forward"
  if "$cc" -std=c11 -O2 -Wall -Wextra -shared -fPIC -isystem "$cuda_home/include" \
    -I"$generated/c/hip" -I"$generated/include" "$here/hip_on_cuda.c" -o "$build/forward/$soname" -ldl; then
    export LD_LIBRARY_PATH="$build/forward${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    run_ep hip "hip EP, its driver forwarded to CUDA (no AMD GPU was used)" 1 0 || { echo "hip: FAILED"; failed=1; }
  else
    failed=1
  fi
else
  echo "no cuda.h: HIP is not forwarded"
fi

say "done"
[ "$failed" = 0 ] && echo "all passed" || echo "something failed"
exit "$failed"
