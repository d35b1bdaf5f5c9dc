import Foundation

/// Tokens that a request took.
public struct Usage: Codable, Equatable, Sendable {
    public var promptTokens: Int
    public var completionTokens: Int
    public var totalTokens: Int

    enum CodingKeys: String, CodingKey {
        case promptTokens = "prompt_tokens"
        case completionTokens = "completion_tokens"
        case totalTokens = "total_tokens"
    }
}

/// A whole answer to a conversation.
public struct ChatCompletion: Codable, Equatable, Sendable {
    public struct Choice: Codable, Equatable, Sendable {
        public var index: Int
        public var message: Message
        /// "stop", "length" or "tool_calls".
        public var finishReason: String?

        enum CodingKeys: String, CodingKey {
            case index, message
            case finishReason = "finish_reason"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    public var choices: [Choice]
    public var usage: Usage?
    /// The first choice's.
    public var text: String { choices.first?.message.content ?? "" }
}

/// A piece of an answer to a conversation.
public struct ChatCompletionChunk: Codable, Equatable, Sendable {
    public struct Delta: Codable, Equatable, Sendable {
        public var role: String?
        public var content: String?
        public var toolCalls: [ToolCall]?
        public var reasoningContent: String?

        enum CodingKeys: String, CodingKey {
            case role, content
            case toolCalls = "tool_calls"
            case reasoningContent = "reasoning_content"
        }
    }
    public struct Choice: Codable, Equatable, Sendable {
        public var index: Int
        public var delta: Delta
        /// In a choice's last chunk.
        public var finishReason: String?

        enum CodingKeys: String, CodingKey {
            case index, delta
            case finishReason = "finish_reason"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    public var choices: [Choice]
    /// In the last chunk, where the request asks for it: more: ["stream_options": ...].
    public var usage: Usage?
    /// What the first choice grows by; often empty in the first and the last chunk.
    public var text: String { choices.first?.delta.content ?? "" }
}

/// What follows a text, whole or a piece of it.
public struct TextCompletion: Codable, Equatable, Sendable {
    public struct Choice: Codable, Equatable, Sendable {
        public var index: Int
        public var text: String
        public var finishReason: String?

        enum CodingKeys: String, CodingKey {
            case index, text
            case finishReason = "finish_reason"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    public var choices: [Choice]
    public var usage: Usage?
    /// The first choice's.
    public var text: String { choices.first?.text ?? "" }
}

private struct Failed: Decodable {
    let error: APIError
}

/// What the engine says to a request, from its first object to its last. A reader that stops
/// aborts it; what a slow reader has not taken yet waits, no more than the request's tokens.
func answers<Object: Decodable & Sendable>(
    _ app: App, _ request: Data, as type: Object.Type
) -> AsyncThrowingStream<Object, Error> {
    AsyncThrowingStream { continuation in
        do {
            let id = try app.start(request) { [weak app] json, last in
                do {
                    if !json.isEmpty { continuation.yield(try read(json, app)) }
                    if last { continuation.finish() }
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { reason in
                if case .cancelled = reason { app.abort(id) }
            }
            answerInBackground(app)
        } catch {
            continuation.finish(throwing: error)
        }
    }
}

/// The last object of a request.
func answer<Object: Decodable & Sendable>(
    _ app: App, _ request: Data, as type: Object.Type
) async throws -> Object {
    var last: Object?
    for try await object in answers(app, request, as: type) { last = object }
    try Task.checkCancellation()  // a cancelled stream ends without an error
    guard let last else { throw WherryError.internalError("The engine has answered nothing.") }
    return last
}

private func read<Object: Decodable>(_ json: Data, _ app: App?) throws -> Object {
    if let failed = try? JSONDecoder().decode(Failed.self, from: json) {
        // Only this reader aborts a request that it listens to, or the system in the background.
        if failed.error.code == "aborted", app?.isClosed ?? true { throw WherryError.closed }
        throw WherryError.request(failed.error)
    }
    return try JSONDecoder().decode(Object.self, from: json)
}
