import Foundation

/// A conversation: it keeps the messages, leaves out the oldest turns when the context is full, and
/// calls tools.
///
/// ```swift
/// let session = ChatSession(engine, system: "Answer in one sentence.", tools: [Weather()])
/// for try await chunk in session.stream("Do I need an umbrella in Oslo?") {
///     print(chunk.text, terminator: "")
/// }
/// ```
///
/// One turn runs at a time; further ones are refused. A turn whose task is cancelled keeps the text
/// so far; one that fails leaves the conversation as it was.
public actor ChatSession {
    private let completions: ChatCompletions
    private let system: String?
    private let tools: [String: any Tool]
    private let settings: Settings
    private let maxToolRounds: Int
    private var running = false

    /// The messages so far, also those that the context has no room for, without the system's.
    public private(set) var messages: [Message]
    /// Number of messages that the last turn left out, because the context is full.
    public private(set) var droppedMessages = 0

    /// - Parameters:
    ///   - system: An instruction, which is always sent.
    ///   - tools: Functions that the model may call; its calls are answered within the turn. Of two
    ///     with one name the last counts.
    ///   - settings: Settings of each turn; their tools are called by the app.
    ///   - messages: Earlier messages, as `messages` returned them.
    ///   - maxToolRounds: Number of times that a turn may call tools; then the model must answer.
    public init(
        _ engine: MLCEngine, system: String? = nil, tools: [any Tool] = [],
        settings: Settings = Settings(), messages: [Message] = [], maxToolRounds: Int = 8
    ) {
        completions = engine.chat.completions
        self.system = system
        self.tools = Dictionary(tools.map { ($0.name, $0) }) { $1 }
        var settings = settings
        let offered = (settings.tools ?? []) + tools.map(\.json)
        settings.tools = offered.isEmpty ? nil : offered
        settings.more["truncation"] = settings.more["truncation"] ?? "auto"
        self.settings = settings
        self.messages = messages
        self.maxToolRounds = maxToolRounds
    }

    /// Returns the whole answer to a message.
    public func send(_ text: String) async throws -> ChatCompletion {
        var last: ChatCompletion?
        try await converse(text) { messages, settings, written in
            let answer = try await self.completions.create(messages, settings)
            written.take(answer)
            last = answer
        }
        guard let last else { throw WherryError.internalError("The turn has no answer.") }
        return last
    }

    /// Returns the answer to a message as a value of a type, as `ChatCompletions.parse` does.
    public func parse<Value: Decodable>(_ type: Value.Type, _ text: String) async throws -> Value {
        let format = try responseFormat(of: type)
        var last = ""
        try await converse(text) { messages, settings, written in
            var typed = settings
            typed.responseFormat = format
            let answer = try await self.completions.create(messages, typed)
            written.take(answer)
            last = answer.text
        }
        return try decoded(type, last)
    }

    /// Returns the answer to a message in chunks, with those of tool calls; the turn begins with the
    /// call, and ends when the reader stops.
    public nonisolated func stream(
        _ text: String
    ) -> AsyncThrowingStream<ChatCompletionChunk, Error> {
        AsyncThrowingStream { continuation in
            let turn = Task {
                do {
                    try await self.converse(text) { messages, settings, written in
                        for try await chunk in self.completions.stream(messages, settings) {
                            written.take(chunk)
                            continuation.yield(chunk)
                        }
                        try Task.checkCancellation() // a cancelled stream ends without an error
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { if case .cancelled = $0 { turn.cancel() } }
        }
    }

    /// Removes the user's last message and what followed it; returns the message, nil if there is
    /// none.
    public func undo() throws -> Message? {
        try requireIdle()
        guard let last = messages.lastIndex(where: { $0.role == "user" }) else { return nil }
        defer { messages.removeSubrange(last...) }
        return messages[last]
    }

    /// Computes the system message, the tools and the messages so far, so that the next turn begins
    /// sooner.
    public func prewarm() async throws {
        var one = settings
        one.maxTokens = 1
        _ = try await completions.create(sent(messages + [.user("")]), one)
    }

    /// Runs a turn; `ask` sends a request, and records what the model has written.
    private func converse(
        _ text: String, _ ask: ([Message], Settings, Written) async throws -> Void
    ) async throws {
        try requireIdle()
        running = true
        defer { running = false }
        let before = messages.count
        messages.append(.user(text))
        var written = Written()
        do {
            for round in 0...maxToolRounds {
                written = Written()
                var limited = settings
                if limited.tools != nil, round == maxToolRounds { limited.toolChoice = ToolChoice.none }
                try await ask(sent(messages), limited, written)
                droppedMessages = written.dropped
                var results: [Message] = []
                for call in written.calls where tools[call.function?.name ?? ""] != nil {
                    results.append(.tool(call.id ?? "", try await called(call)))
                }
                messages += [written.message] + results
                if results.isEmpty { break }
            }
        } catch {
            let keeps = error is CancellationError && written.calls.isEmpty && !written.text.isEmpty
            if keeps { messages.append(written.message) } else { messages.removeSubrange(before...) }
            throw error
        }
    }

    /// Whether no turn is running.
    public var isIdle: Bool { !running }

    private func requireIdle() throws {
        if running { throw WherryError.busy("The session answers another message; await it first.") }
    }

    private func called(_ call: ToolCall) async throws -> String {
        guard let function = call.function, let tool = tools[function.name ?? ""] else { return "" }
        return try await tool.called(function.arguments ?? "")
    }

    private func sent(_ messages: [Message]) -> [Message] {
        (system.map { [.system($0)] } ?? []) + messages
    }
}

/// What the model has written in a response, from its chunks or as a whole.
private final class Written: @unchecked Sendable { // one turn uses it, a step after another
    private(set) var text = ""
    private(set) var dropped = 0
    private var pieces: [Int: ToolCall] = [:]

    func take(_ chunk: ChatCompletionChunk) {
        text += chunk.text
        dropped = chunk.droppedMessages ?? dropped
        for piece in chunk.choices.first?.delta.toolCalls ?? [] { add(piece, at: piece.index ?? 0) }
    }

    func take(_ answer: ChatCompletion) {
        text = answer.text
        dropped = answer.droppedMessages ?? 0
        for (i, call) in (answer.choices.first?.message.toolCalls ?? []).enumerated() {
            add(call, at: i)
        }
    }

    var calls: [ToolCall] { pieces.sorted { $0.key < $1.key }.map(\.value) }

    var message: Message {
        var completed = Message.assistant(text)
        guard !pieces.isEmpty else { return completed }
        completed.content = text.isEmpty ? nil : text
        completed.toolCalls = calls
        return completed
    }

    private func add(_ piece: ToolCall, at index: Int) {
        var call = pieces[index] ?? ToolCall(type: "function")
        var function = call.function ?? ToolCall.Function()
        call.id = call.id ?? piece.id
        function.name = function.name ?? piece.function?.name
        function.arguments = (function.arguments ?? "") + (piece.function?.arguments ?? "")
        call.function = function
        pieces[index] = call
    }
}
