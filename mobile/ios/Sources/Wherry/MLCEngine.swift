import CWherry
import Foundation

/// Version of this package, which equals the versions of the core and the compiler.
public let wherryVersion = "0.1.0"

/// A language model in this process. Any task may use it; requests run together.
///
/// ```swift
/// let engine = try await MLCEngine.load(folder)
/// for try await chunk in engine.chat.completions.stream([.user("Hello!")]) {
///     print(chunk.text, terminator: "")
/// }
/// ```
///
/// Cancelling the task aborts its request. When memory is short, or the app goes to the background,
/// the engine frees the caches of earlier conversations. Releasing the engine frees its model.
public actor MLCEngine {
    private let app: App
    private let watch: SystemWatch
    /// The namespace `engine.chat`, as in OpenAI's own clients.
    public nonisolated let chat: Chat
    public nonisolated let completions: Completions

    private init(_ app: App) {
        self.app = app
        watch = SystemWatch(app)
        chat = Chat(completions: ChatCompletions(app: app))
        completions = Completions(app: app)
    }

    /// Loads a folder that `wherry package` has written, or `Models.download` has downloaded.
    ///
    /// Cancelling the task ends the load at its next report.
    ///
    /// - Parameter progress: Callback with the progress, on the thread that loads.
    public static func load(
        _ folder: URL, options: EngineOptions = EngineOptions(),
        progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
    ) async throws -> MLCEngine {
        MLCEngine(try await Watcher(progress).run { try opened(folder, options, $0) })
    }

    public func stats() throws -> EngineStats {
        EngineStats(json: try JSONDecoder().decode([String: JSONValue].self, from: try app.stats()))
    }

    /// Frees the caches of earlier conversations.
    public func trim() throws {
        try app.trim()
    }

    /// Limits the threads of all engines from their next step on; 0 removes the limit. Answers stay
    /// the same. The engine does it itself when the system says that the device is hot.
    public static func limitThreads(_ most: Int) throws {
        let status = wherry_app_limit_threads(Int32(clamping: most))
        guard status == 0 else { throw failure(status) }
    }

    /// Aborts running requests and frees the model at once.
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

/// Counters of an engine.
public struct EngineStats: Sendable {
    /// All counters of the engine, by name.
    public let json: [String: JSONValue]
    public var pagesTotal: Int64 { number("pages_total") }
    public var pagesFree: Int64 { number("pages_free") }
    /// What runs the model: "cpu" or "metal".
    public var device: String? { json["device"].flatMap(Self.text) }
    /// Code of the package that a load would have preferred, and why it does not run here.
    public var passedOver: [String: String] {
        guard case .array(let rows)? = json["passed_over"] else { return [:] }
        var reasons: [String: String] = [:]
        for case .object(let row) in rows {
            guard let code = row["code"].flatMap(Self.text) else { continue }
            reasons[code] = row["reason"].flatMap(Self.text) ?? ""
        }
        return reasons
    }

    private static func text(_ value: JSONValue) -> String? {
        if case .string(let text) = value { return text }
        return nil
    }

    private func number(_ name: String) -> Int64 {
        if case .int(let value)? = json[name] { return value }
        return 0
    }
}

public struct Chat: Sendable {
    public let completions: ChatCompletions
}

/// The endpoint for chat completions: messages in, a message out.
public struct ChatCompletions: Sendable {
    let app: App

    /// Returns the whole answer to messages.
    public func create(
        _ messages: [Message], _ settings: Settings = Settings()
    ) async throws -> ChatCompletion {
        let fields: [String: JSONValue] = try ["messages": jsonValue(messages), "stream": false]
        return try await answer(app, try requestJSON(settings, fields), as: ChatCompletion.self)
    }

    /// Returns the answer as a value of a type, to whose schema (`jsonSchema(of:)`) the model's text
    /// is constrained. It needs a package with `--grammar`.
    public func parse<Value: Decodable>(
        _ type: Value.Type, _ messages: [Message], _ settings: Settings = Settings()
    ) async throws -> Value {
        var settings = settings
        settings.responseFormat = try Wherry.responseFormat(of: type)
        return try decoded(type, try await create(messages, settings).text)
    }

    /// Returns the answer in chunks; the request begins with the call.
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

/// The endpoint for text completions: a text in, its continuation out.
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
