import CWherry
import Foundation

/// Options of a download.
public struct DownloadOptions: Sendable {
    /// Headers of requests to the server, such as ["Authorization": "Bearer ..."]; they are not
    /// sent to servers that it redirects to.
    public var headers: [String: String] = [:]
    /// Whether the files of a complete folder are hashed, so that damaged ones are downloaded
    /// again; otherwise only their sizes are compared.
    public var verify = false
    /// Whether the download may use mobile networks.
    public var allowsCellularAccess = true

    public init() {}
}

/// Downloads models after an app is installed.
public enum Models {
    /// Downloads a model to `folder`, which `MLCEngine.load` then takes.
    ///
    /// Files that are already complete are not fetched again, and a complete folder needs no
    /// network, so call this at each start. An interrupted download resumes; cancelling the task
    /// ends it. A model that is being replaced can be loaded until the new one is complete.
    ///
    /// - Parameters:
    ///   - url: Address of the folder: `assets/NAME`, which `wherry package` has written, on any
    ///     server.
    ///   - folder: Folder to create, for example in Application Support; it is excluded from backups.
    ///   - progress: Callback with the phases "check" and "download", in bytes, on a thread of the
    ///     download.
    public static func download(
        _ url: URL, to folder: URL, options: DownloadOptions = DownloadOptions(),
        progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
    ) async throws {
        let http = HTTP(options)
        defer { http.end() }
        let watcher = Watcher(progress, onCancel: { http.cancel() })
        try await watcher.run { try downloaded(url, folder, options, http, $0) }
        #if canImport(Darwin)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            var place = folder
            try? place.setResourceValues(values)
        #endif
    }
}

private func downloaded(
    _ url: URL, _ folder: URL, _ options: DownloadOptions, _ http: HTTP,
    _ progress: UnsafePointer<wherry_app_progress>
) throws {
    var fetcher = wherry_app_fetcher(
        size: MemoryLayout<wherry_app_fetcher>.size,
        context: Unmanaged.passUnretained(http).toOpaque(),
        fetch: fetched)
    let json = options.verify ? "{\"verify\": true}" : "{}"
    let status = wherry_app_download(url.absoluteString, folder.path, json, &fetcher, progress)
    if status == 0 { return }
    let error = failure(status)
    if case WherryError.unreachable(let text, _) = error {
        throw WherryError.unreachable(text, httpStatus: http.status)
    }
    throw error
}

private let fetched:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, OpaquePointer?) -> Void = {
        context, url, from, answer in
        guard let context, let url, let answer else { return }
        let http = Unmanaged<HTTP>.fromOpaque(context).takeUnretainedValue()
        http.fetch(String(cString: url), from, answer)
    }
