#if defined(_WIN32)

#include <windows.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "system/files.h"
#include "system/wide.h"

namespace wherry::files {

namespace {

constexpr int64_t kTick = 100;                  // nanoseconds of Windows' file times
constexpr int64_t kEpoch = 116444736000000000;  // ticks from 1601 to 1970
constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
// Where the lock lies: Windows keeps others from reading and writing what is locked, so it is a
// byte that no file has.
constexpr DWORD kLockHigh = 0x40000000;

HANDLE of(intptr_t handle) { return reinterpret_cast<HANDLE>(handle); }

// Sets errno by the error of the last call; false.
bool failed() {
  switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
    case ERROR_BAD_NETPATH:
      errno = ENOENT;
      break;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      errno = EEXIST;
      break;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION:
    case ERROR_WRITE_PROTECT:
    case ERROR_USER_MAPPED_FILE:
      errno = EACCES;
      break;
    case ERROR_LOCK_VIOLATION:
    case ERROR_IO_PENDING:
      errno = EWOULDBLOCK;
      break;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      errno = ENOSPC;
      break;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      errno = ENOMEM;
      break;
    case ERROR_TOO_MANY_OPEN_FILES:
      errno = EMFILE;
      break;
    default:
      errno = EIO;
  }
  return false;
}

bool check(BOOL succeeded) { return succeeded || failed(); }

int64_t nanoseconds(const FILETIME& time) {
  const int64_t ticks = static_cast<int64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
  return (ticks - kEpoch) * kTick;
}

FILETIME filetime(int64_t nanoseconds) {
  const int64_t ticks = nanoseconds / kTick + kEpoch;
  return {static_cast<DWORD>(ticks), static_cast<DWORD>(ticks >> 32)};
}

uint64_t join(DWORD high, DWORD low) { return static_cast<uint64_t>(high) << 32 | low; }

struct Access {
  DWORD rights, creation, flags;
};

Access access_of(Open how) {
  switch (how) {
    case Open::kRead:
      return {GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS};  // a folder opens, too
    case Open::kPlain:
      return {GENERIC_READ, OPEN_EXISTING,
              FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT};
    case Open::kLock:
      return {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT};
    case Open::kNew:
      return {GENERIC_WRITE, CREATE_NEW, 0};
    case Open::kReplace:
      break;
  }
  return {GENERIC_WRITE, CREATE_ALWAYS, 0};
}

bool is_link(HANDLE file) {
  FILE_ATTRIBUTE_TAG_INFO tag{};
  return GetFileInformationByHandleEx(file, FileAttributeTagInfo, &tag, sizeof tag) &&
         (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0;
}

// Renames to the name of a file that a program has open, whose handles keep that file: the POSIX
// semantics of NTFS (Windows 10 1709 and later; false elsewhere, also on Wine 8).
bool replace_open(const std::wstring& from, const std::wstring& to) {
  HANDLE file = CreateFileW(from.c_str(), DELETE | SYNCHRONIZE, kShared, nullptr, OPEN_EXISTING,
                            FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (file == INVALID_HANDLE_VALUE) return false;
  const size_t bytes = to.size() * sizeof(wchar_t);
  // Its last member holds one unit: the zero at the name's end.
  std::vector<std::max_align_t> room((sizeof(FILE_RENAME_INFO) + bytes) / sizeof(std::max_align_t) +
                                     1);
  auto* rename_info = reinterpret_cast<FILE_RENAME_INFO*>(room.data());
  rename_info->Flags = FILE_RENAME_FLAG_REPLACE_IF_EXISTS | FILE_RENAME_FLAG_POSIX_SEMANTICS;
  rename_info->FileNameLength = static_cast<DWORD>(bytes);
  std::memcpy(rename_info->FileName, to.c_str(), bytes);
  const DWORD size = static_cast<DWORD>(sizeof(FILE_RENAME_INFO) + bytes);
  const bool done = SetFileInformationByHandle(file, FileRenameInfoEx, rename_info, size) != 0;
  CloseHandle(file);
  return done;
}

OVERLAPPED at(uint64_t offset) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

// Calls ReadFile or WriteFile until all bytes are done.
template <typename Bytes, typename Call>
bool all_of(Call call, intptr_t handle, Bytes* from, size_t bytes, uint64_t offset) {
  constexpr size_t kMost = 1 << 30;  // bytes of a call, which counts them in 32 bits
  while (bytes > 0) {
    OVERLAPPED place = at(offset);
    DWORD done = 0;
    const auto size = static_cast<DWORD>(bytes < kMost ? bytes : kMost);
    if (!call(of(handle), from, size, &done, &place)) return failed();
    if (done == 0) {
      errno = EIO;
      return false;
    }
    from += done;
    bytes -= done;
    offset += done;
  }
  return true;
}

}  // namespace

File::File(const std::string& path, Open how) {
  const Access access = access_of(how);
  HANDLE file = CreateFileW(wide_path(path).c_str(), access.rights, kShared, nullptr,
                            access.creation, access.flags | FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) {
    failed();
    return;
  }
  handle_ = reinterpret_cast<intptr_t>(file);
  if ((access.flags & FILE_FLAG_OPEN_REPARSE_POINT) != 0 && is_link(file)) {
    close();
    errno = ELOOP;
  }
}

void File::close() {
  if (handle_ == kClosed) return;
  const int reason = errno;
  CloseHandle(of(std::exchange(handle_, kClosed)));
  errno = reason;
}

std::optional<Info> File::info() const {
  BY_HANDLE_FILE_INFORMATION data{};
  if (GetFileType(of(handle_)) != FILE_TYPE_DISK) {
    errno = EISDIR;
    return std::nullopt;
  }
  if (!check(GetFileInformationByHandle(of(handle_), &data))) return std::nullopt;
  if ((data.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) {
    errno = EISDIR;
    return std::nullopt;
  }
  return Info{join(data.nFileSizeHigh, data.nFileSizeLow), nanoseconds(data.ftLastWriteTime)};
}

bool File::is_named(const std::string& path) const {
  const File other(path, Open::kRead);
  BY_HANDLE_FILE_INFORMATION own{}, named{};
  return other && GetFileInformationByHandle(of(handle_), &own) &&
         GetFileInformationByHandle(of(other.handle_), &named) &&
         own.dwVolumeSerialNumber == named.dwVolumeSerialNumber &&
         own.nFileIndexHigh == named.nFileIndexHigh && own.nFileIndexLow == named.nFileIndexLow;
}

bool File::read_at(void* to, size_t bytes, uint64_t offset) const {
  return all_of(ReadFile, handle_, static_cast<char*>(to), bytes, offset);
}

bool File::write_at(const void* from, size_t bytes, uint64_t offset) {
  return all_of(WriteFile, handle_, static_cast<const char*>(from), bytes, offset);
}

bool File::set_size(uint64_t bytes) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  return check(SetFileInformationByHandle(of(handle_), FileEndOfFileInfo, &end, sizeof end));
}

bool File::set_modified(int64_t time) {
  const FILETIME written = filetime(time);
  return check(SetFileTime(of(handle_), nullptr, nullptr, &written));
}

bool File::flush() { return check(FlushFileBuffers(of(handle_))); }

void File::read_ahead() const {}  // Windows has no such call for files that are not mapped

bool File::try_lock() {
  OVERLAPPED place{};
  place.OffsetHigh = kLockHigh;
  constexpr DWORD kFlags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
  return check(LockFileEx(of(handle_), kFlags, 0, 1, 0, &place));
}

void File::unlock() {
  OVERLAPPED place{};
  place.OffsetHigh = kLockHigh;
  UnlockFileEx(of(handle_), 0, 1, 0, &place);
}

std::optional<Info> info_of(const std::string& path) {
  WIN32_FILE_ATTRIBUTE_DATA data{};
  if (!check(GetFileAttributesExW(wide_path(path).c_str(), GetFileExInfoStandard, &data))) {
    return std::nullopt;
  }
  if ((data.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return std::nullopt;
  return Info{join(data.nFileSizeHigh, data.nFileSizeLow), nanoseconds(data.ftLastWriteTime)};
}

bool set_modified(const std::string& path, int64_t time) {
  HANDLE file = CreateFileW(wide_path(path).c_str(), FILE_WRITE_ATTRIBUTES, kShared, nullptr,
                            OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr);
  if (file == INVALID_HANDLE_VALUE) return failed();
  const FILETIME written = filetime(time);
  const bool done = check(SetFileTime(file, nullptr, nullptr, &written));
  CloseHandle(file);
  return done;
}

bool rename(const std::string& from, const std::string& to) {
  const std::wstring source = wide_path(from), target = wide_path(to);
  if (MoveFileExW(source.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING)) return true;
  const DWORD reason = GetLastError();
  if (reason == ERROR_ACCESS_DENIED && replace_open(source, target)) return true;
  SetLastError(reason);
  return failed();
}

bool remove(const std::string& path) { return check(DeleteFileW(wide_path(path).c_str())); }

bool make_folder(const std::string& path) {
  return check(CreateDirectoryW(wide_path(path).c_str(), nullptr)) || errno == EEXIST;
}

bool can_read(const std::string& path) { return static_cast<bool>(File(path, Open::kRead)); }

// By a file: what a folder's list of rights means for this user, only trying tells.
bool can_write_in(const std::string& folder) {
  const std::string path = folder + "/" + std::to_string(process_id()) + ".check";
  const File file(path, Open::kReplace);
  return file && remove(path);
}

void for_each_name(const std::string& folder, const std::function<void(const std::string&)>& call) {
  WIN32_FIND_DATAW entry{};
  HANDLE search = FindFirstFileW(wide_path(folder + "/*").c_str(), &entry);
  if (search == INVALID_HANDLE_VALUE) return;
  do {
    call(utf8_of(entry.cFileName));
  } while (FindNextFileW(search, &entry));
  FindClose(search);
}

int64_t wall_clock() {
  FILETIME now{};
  GetSystemTimePreciseAsFileTime(&now);
  return nanoseconds(now);
}

int process_id() { return static_cast<int>(GetCurrentProcessId()); }

}  // namespace wherry::files

#endif
