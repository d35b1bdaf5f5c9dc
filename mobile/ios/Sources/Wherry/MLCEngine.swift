import Foundation

/// Of this package: the core's and the compiler's, too.
public let wherryVersion = "0.1.0"

/// A model that answers, in this process. Any task may use it; requests run together.
///
/// ```swift
/// let engine = try await MLCEngine.load(folder)
/// for try await chunk in engine.chat.completions.stream([.user("Hello!")]) {
///     print(chunk.text, terminator: "")
/// }
/// ```
///
/// Cancelling the task aborts its request. When memory is short, or the app goes to the background,
/// caches of earlier conversations are given up. Releasing the engine frees its model.
public actor MLCEngine {
    private let app: App
    private let watch: SystemWatch
    /// `engine.chat.completions`, as in OpenAI's own clients.
    public nonisolated let chat: Chat
    public nonisolated let completions: Completions

    private init(_ app: App) {
        self.app = app
        watch = SystemWatch(app)
        chat = Chat(completions: ChatCompletions(app: app))
        completions = Completions(app: app)
    }

    /// Load a folder that `wherry package` has written, or `Models.download` has brought.
    ///
    /// Cancelling the task ends the load at its next report.
    ///
    /// - Parameter progress: Called on the thread that loads.
    public static func load(
        _ folder: URL, options: EngineOptions = EngineOptions(),
        progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
    ) async throws -> MLCEngine {
        MLCEngine(try await Watcher(progress).run { try opened(folder, options, $0) })
    }

    public func stats() throws -> EngineStats {
        EngineStats(json: try JSONDecoder().decode([String: JSONValue].self, from: try app.stats()))
    }

    /// Give up what is kept of earlier conversations.
    public func trim() throws {
        try app.trim()
    }

    /// Abort what runs and free the model, now.
    public func close() async {
        let app = self.app
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            DispatchQueue.global().async {
                app.close()
                continuation.resume()
            }
        }
    }
}

/// What an engine is doing.
public struct EngineStats: Sendable {
    /// All that it says.
    public let json: [String: JSONValue]
    public var pagesTotal: Int64 { number("pages_total") }
    public var pagesFree: Int64 { number("pages_free") }

    private func number(_ name: String) -> Int64 {
        if case .int(let value)? = json[name] { return value }
        return 0
    }
}

public struct Chat: Sendable {
    public let completions: ChatCompletions
}

/// Chat completions: messages in, a message out.
public struct ChatCompletions: Sendable {
    let app: App

    /// The whole answer.
    public func create(
        _ messages: [Message], _ settings: Settings = Settings()
    ) async throws -> ChatCompletion {
        let fields: [String: JSONValue] = try ["messages": jsonValue(messages), "stream": false]
        return try await answer(app, try requestJSON(settings, fields), as: ChatCompletion.self)
    }

    /// The answer piece by piece; the request begins with the call.
    public func stream(
        _ messages: [Message], _ settings: Settings = Settings()
    ) -> AsyncThrowingStream<ChatCompletionChunk, Error> {
        do {
            let fields: [String: JSONValue] = try ["messages": jsonValue(messages), "stream": true]
            return answers(app, try requestJSON(settings, fields), as: ChatCompletionChunk.self)
        } catch {
            return AsyncThrowingStream { $0.finish(throwing: error) }
        }
    }
}

/// Text completions: a text in, what follows it out.
public struct Completions: Sendable {
    let app: App

    public func create(
        _ prompt: String, _ settings: Settings = Settings()
    ) async throws -> TextCompletion {
        let fields: [String: JSONValue] = ["prompt": .string(prompt), "stream": false]
        return try await answer(app, try requestJSON(settings, fields), as: TextCompletion.self)
    }

    public func stream(
        _ prompt: String, _ settings: Settings = Settings()
    ) -> AsyncThrowingStream<TextCompletion, Error> {
        do {
            let fields: [String: JSONValue] = ["prompt": .string(prompt), "stream": true]
            return answers(app, try requestJSON(settings, fields), as: TextCompletion.self)
        } catch {
            return AsyncThrowingStream { $0.finish(throwing: error) }
        }
    }
}
