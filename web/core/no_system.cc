// Stubs for the system calls of the C library, because a page has no operating system. The core
// never uses files, sockets and signals there; with these stubs, an instance imports nothing but a
// few functions of WASI and ours.
#include <errno.h>
#include <stddef.h>
#include <sys/file.h>
#include <syscall_arch.h>

extern "C" {

long __syscall_chdir(long) { return -ENOSYS; }
long __syscall_chmod(long, long) { return -ENOSYS; }
long __syscall_faccessat(long, long, long, long) { return -ENOSYS; }
long __syscall_fadvise64_64(long, long, long, long, long, long) { return -ENOSYS; }
long __syscall_fchmod(long, long) { return -ENOSYS; }
long __syscall_fchmodat(long, long, long, ...) { return -ENOSYS; }
long __syscall_fstat64(long, long) { return -ENOSYS; }
long __syscall_fstatat64(long, long, long, long) { return -ENOSYS; }
long __syscall_fstatfs64(long, long, long) { return -ENOSYS; }
long __syscall_ftruncate64(long, long, long) { return -ENOSYS; }
long __syscall_getcwd(long, long) { return -ENOSYS; }
long __syscall_getdents64(long, long, long) { return -ENOSYS; }
long __syscall_link(long, long) { return -ENOSYS; }
long __syscall_lstat64(long, long) { return -ENOSYS; }
long __syscall_mkdir(long, long) { return -ENOSYS; }
long __syscall_openat(long, long, long, ...) { return -ENOSYS; }
long __syscall_readlink(long, long, long) { return -ENOSYS; }
long __syscall_rename(long, long) { return -ENOSYS; }
long __syscall_rmdir(long) { return -ENOSYS; }
long __syscall_stat64(long, long) { return -ENOSYS; }
long __syscall_statfs64(long, long, long) { return -ENOSYS; }
long __syscall_symlink(long, long) { return -ENOSYS; }
long __syscall_truncate64(long, long, long) { return -ENOSYS; }
long __syscall_unlink(long) { return -ENOSYS; }
long __syscall_utimensat(long, long, long, long) { return -ENOSYS; }
long _msync_js(long, long, long, long) { return -ENOSYS; }
int flock(int, int) {
  errno = ENOSYS;
  return -1;
}
void __call_sighandler(void (*)(int), int) {}
void emscripten_notify_memory_growth(size_t) {}  // the script creates its views of the memory anew

}  // extern "C"
