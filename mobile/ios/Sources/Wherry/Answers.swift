import Foundation

/// Token counts of a request.
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

/// Times of a request, under the names of llama.cpp's server.
public struct Timings: Codable, Equatable, Sendable {
    /// Tokens of the prompt that were computed, and not found in the cache, per second.
    public var promptPerSecond: Double
    /// Tokens of the output per second.
    public var outputPerSecond: Double

    enum CodingKeys: String, CodingKey {
        case promptPerSecond = "prompt_per_second"
        case outputPerSecond = "predicted_per_second"
    }
}

/// The log probability of a token, and of the most likely tokens in its place.
public struct TokenLogprob: Codable, Equatable, Sendable {
    /// Text of the token; its bytes need not be a whole character.
    public var token: String
    public var logprob: Double
    /// As many as `top_logprobs`; nil in an entry of such a list.
    public var top: [TokenLogprob]?

    enum CodingKeys: String, CodingKey {
        case token, logprob
        case top = "top_logprobs"
    }
}

/// Log probabilities of a choice's tokens.
public struct Logprobs: Codable, Equatable, Sendable {
    public var content: [TokenLogprob]?
}

/// The whole answer to a conversation.
public struct ChatCompletion: Codable, Equatable, Sendable {
    public struct Choice: Codable, Equatable, Sendable {
        public var index: Int
        public var message: Message
        /// Why the choice ended: "stop", "length" or "tool_calls".
        public var finishReason: String?
        /// nil unless the request asks for them: more: ["logprobs": true].
        public var logprobs: Logprobs?

        enum CodingKeys: String, CodingKey {
            case index, message, logprobs
            case finishReason = "finish_reason"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    public var choices: [Choice]
    public var usage: Usage?
    public var timings: Timings?
    /// Number of messages that `truncation` has left out; nil: none.
    public var droppedMessages: Int?
    /// The whole object as JSON, with the fields that have no property here.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case id, created, model, choices, usage, timings
        case droppedMessages = "dropped_messages"
    }
    /// Text of the first choice.
    public var text: String { choices.first?.message.content ?? "" }
}

/// A chunk of the answer to a conversation.
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
        /// Why the choice ended; only in its last chunk.
        public var finishReason: String?
        /// Of the tokens that the chunk adds.
        public var logprobs: Logprobs?

        enum CodingKeys: String, CodingKey {
            case index, delta, logprobs
            case finishReason = "finish_reason"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    public var choices: [Choice]
    /// Token counts, in the last chunk if the request asks for them: more: ["stream_options": ...].
    public var usage: Usage?
    /// Times of the request, in the chunk that has its usage.
    public var timings: Timings?
    /// Number of messages that `truncation` has left out, in the first chunk; nil: none.
    public var droppedMessages: Int?
    /// The whole object as JSON, with the fields that have no property here.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case id, created, model, choices, usage, timings
        case droppedMessages = "dropped_messages"
    }
    /// Text that the chunk adds to the first choice; often empty in the first and the last chunk.
    public var text: String { choices.first?.delta.content ?? "" }
}

/// The continuation of a text, or a chunk of it.
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
    public var timings: Timings?
    /// The whole object as JSON, with the fields that have no property here.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case id, created, model, choices, usage, timings
    }
    /// Text of the first choice.
    public var text: String { choices.first?.text ?? "" }
}

/// An answer that keeps the JSON from which it was read.
protocol Answer: Decodable, Sendable {
    var json: Data { get set }
}

extension ChatCompletion: Answer {}
extension ChatCompletionChunk: Answer {}
extension TextCompletion: Answer {}

private struct Failed: Decodable {
    let error: APIError
}

/// The engine's answers to a request, from the first object to the last. A reader that stops aborts
/// the request. Answers that a slow reader has not taken yet are queued; there are at most as many
/// as tokens.
func answers<Object: Answer>(
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

/// Sends a request, and returns the last JSON object that it is answered with.
func answer<Object: Answer>(
    _ app: App, _ request: Data, as type: Object.Type
) async throws -> Object {
    var last: Object?
    for try await object in answers(app, request, as: type) { last = object }
    try Task.checkCancellation() // needed because a cancelled stream ends without an error
    guard let last else { throw WherryError.internalError("The engine has answered nothing.") }
    return last
}

private func read<Object: Answer>(_ json: Data, _ app: App?) throws -> Object {
    if let failed = try? JSONDecoder().decode(Failed.self, from: json) {
        // Only this reader aborts its own request, unless the engine was closed, or the app went to
        // the background.
        if failed.error.code == "aborted", app?.isClosed ?? true { throw WherryError.closed }
        throw WherryError.request(failed.error)
    }
    var object = try JSONDecoder().decode(Object.self, from: json)
    object.json = json
    return object
}
