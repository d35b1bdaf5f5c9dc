import Foundation
import Wherry

/// A model that the app offers. `wherry-package.json` of `wherry package` has the numbers.
struct Offer: Identifiable {
    /// The model's folder in the app, or on this device.
    let id: String
    let title: String
    /// Address of its folder (`assets/NAME`) on a server; nil: the app contains it.
    let server: URL?
    /// Size of its files.
    let bytes: Int64
    /// Bytes that it takes at least, before its manifest is here and tells.
    let memory: Int64

    private var folder: URL {
        guard server != nil else { return Bundle.main.resourceURL!.appendingPathComponent(id) }
        return URL.applicationSupportDirectory.appendingPathComponent(id)
    }

    /// Whether its files are on this device, all of them or in part.
    var isHere: Bool { FileManager.default.fileExists(atPath: folder.path) }

    /// Says whether the device has the memory for it: nil if it has, else what is missing.
    var obstacle: String? {
        let needed = MLCEngine.plan(folder)?.least ?? memory
        guard let available = MLCEngine.availableMemory, needed > available else { return nil }
        return "needs \(megabytes(needed)) MB of memory, \(megabytes(available)) are free"
    }

    /// Brings its files to this device; an interrupted download resumes.
    func fetch(_ show: @escaping @Sendable (LoadProgress) -> Void) async throws -> URL {
        if let server { try await Models.download(server, to: folder, progress: show) }
        return folder
    }

    func delete() { try? FileManager.default.removeItem(at: folder) }

    /// The models of the sample; an app has its own, on a server of its own.
    static let all = [
        Offer(id: "demo", title: "Demo, in the app", server: nil, bytes: 2_400_000, memory: 20_000_000),
        Offer(
            id: "smollm2-135m", title: "SmolLM2 (135M)",
            server: URL(string: "https://models.example/smollm2-135m"),
            bytes: 76_000_000, memory: 140_000_000),
        Offer(
            id: "llama-3.2-1b", title: "Llama 3.2 (1B)",
            server: URL(string: "https://models.example/llama-3.2-1b"),
            bytes: 695_000_000, memory: 845_000_000),
    ]
}

func megabytes(_ bytes: Int64) -> Int64 { bytes / 1_000_000 }
