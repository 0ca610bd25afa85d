"""What a user writes, for type checkers."""

import ctypes

import ort_interop as ort


def main() -> int:
    lib = ort.load()
    env = ctypes.POINTER(ort.OrtEnv)()
    lib.api.CreateEnv(ort.OrtLoggingLevel.ORT_LOGGING_LEVEL_WARNING, b"sample", env)
    options = ctypes.POINTER(ort.OrtSessionOptions)()
    lib.api.CreateSessionOptions(options)
    lib.api.SetIntraOpNumThreads(options.contents, 1)
    supported = ctypes.c_bool()
    importer = ctypes.POINTER(ort.OrtExternalResourceImporter)()
    kind = ort.OrtExternalMemoryHandleType.ORT_EXTERNAL_MEMORY_HANDLE_TYPE_MEMORY_OPAQUE_FD
    if importer:
        lib.interop_api.CanImportMemory(importer.contents, kind, supported)
    descriptor = lib.make(ort.OrtExternalMemoryDescriptor, handle_type=kind, size_bytes=4096)
    size: int = descriptor.size_bytes
    descriptor.offset_bytes = size - 1
    found: ort.OrtExternalMemoryHandleType = descriptor.handle_type
    logged = lib.callback(ort.OrtLoggingFunction, print)
    print(found, logged, ort.c_OrtMemType().member, lib.exports.absent)
    try:
        lib.api.ReleaseEnv(env)
    except ort.OrtInvalidArgumentError as error:
        print(error.code, error.message)
    name: bytes | None = lib.base.GetVersionString()
    return len(name or b"")
