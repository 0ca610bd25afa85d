/* memfd_create and mmap beside plain C11. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "mock_share.h"

#include "mock_record.h"

#ifdef _WIN32
#include <windows.h>

static HANDLE mock_handle(intptr_t native) {
  return (HANDLE)native;
}

intptr_t mock_export_memory(size_t bytes) {
  return (intptr_t)CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE,
                                      (DWORD)((uint64_t)bytes >> 32), (DWORD)bytes, NULL);
}

void* mock_map(intptr_t exported, size_t bytes) {
  return MapViewOfFile(mock_handle(exported), FILE_MAP_ALL_ACCESS, 0, 0, bytes);
}

void mock_unmap(void* mapped, size_t bytes) {
  (void)bytes;
  (void)UnmapViewOfFile(mapped);
}

void mock_close(intptr_t exported) {
  (void)CloseHandle(mock_handle(exported));
}

bool mock_share_open(MockShare* share, intptr_t native, bool consumed, size_t bytes) {
  void* probe = mock_map(native, bytes);
  if (probe == NULL) {
    return false;
  }
  mock_unmap(probe, bytes);
  *share = (MockShare){.native = native, .consumed = consumed};
  return true;
}

void mock_share_close(const MockShare* share) {
  if (share->consumed) {
    mock_close(share->native);
  }
}
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

intptr_t mock_export_memory(size_t bytes) {
  int fd = memfd_create("mock-driver", MFD_CLOEXEC);
  if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

void* mock_map(intptr_t exported, size_t bytes) {
  void* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, (int)exported, 0);
  return mapped == MAP_FAILED ? NULL : mapped;
}

void mock_unmap(void* mapped, size_t bytes) {
  (void)munmap(mapped, bytes);
}

void mock_close(intptr_t exported) {
  (void)close((int)exported);
}

bool mock_share_open(MockShare* share, intptr_t native, bool consumed, size_t bytes) {
  struct stat status;
  int flags = fcntl((int)native, F_GETFL);
  if (fstat((int)native, &status) != 0 || !S_ISREG(status.st_mode) ||
      (flags & O_ACCMODE) != O_RDWR || (uint64_t)status.st_size < bytes) {
    return false;
  }
  *share = (MockShare){native, consumed, (uint64_t)status.st_dev, (uint64_t)status.st_ino};
  return true;
}

void mock_share_close(const MockShare* share) {
  struct stat status;
  if (!share->consumed) {
    return;
  }
  if (fstat((int)share->native, &status) != 0 || (uint64_t)status.st_dev != share->device ||
      (uint64_t)status.st_ino != share->inode) {
    mock_offend("descriptor %d was closed by somebody else after its import", (int)share->native);
  } else {
    (void)close((int)share->native);
  }
}
#endif

intptr_t mock_export_semaphore(void) {
  return mock_export_memory(MOCK_SEMAPHORE_BYTES);
}
