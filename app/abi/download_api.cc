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
