// Implements wherry_app_download over app/files.
#include "app/abi/calls.h"
#include "app/files/download.h"

int wherry_app_download(const char* url, const char* folder, const char* options_json,
                        const wherry_app_fetcher* fetcher, const wherry_app_progress* progress) {
  using namespace wherry::app;
  return guarded([&] {
    require(url, "url");
    require(folder, "folder");
    require(fetcher, "fetcher");
    require(reinterpret_cast<const void*>(fetcher->fetch), "fetcher->fetch");
    const DownloadOptions options = read_download_options(options_json ? options_json : "");
    download(url, folder, options, *fetcher, progress);
  });
}

int wherry_app_missing(const char* manifest_json, size_t length, const char* folder, char** json) {
  using namespace wherry::app;
  return guarded([&] {
    require(manifest_json, "manifest_json");
    require(folder, "folder");
    require(json, "json");
    *json = copied(missing_files(std::string(manifest_json, length), folder));
  });
}
