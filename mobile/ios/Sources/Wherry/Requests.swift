import Foundation

/// One message of a conversation.
public struct Message: Codable, Equatable, Sendable {
    public var role: String
    public var content: String?
    /// Calls that an assistant's message asks for.
    public var toolCalls: [ToolCall]?
    /// Of a message with a tool's result: which call it answers.
    public var toolCallID: String?
    /// What a model thought before it answered.
    public var reasoningContent: String?

    public init(role: String, content: String?) {
        self.role = role
        self.content = content
    }

    public static func system(_ text: String) -> Message { Message(role: "system", content: text) }
    public static func user(_ text: String) -> Message { Message(role: "user", content: text) }
    public static func assistant(_ text: String) -> Message {
        Message(role: "assistant", content: text)
    }
    /// The result of a call that the model asked for.
    public static func tool(_ callID: String, _ result: String) -> Message {
        var made = Message(role: "tool", content: result)
        made.toolCallID = callID
        return made
    }

    enum CodingKeys: String, CodingKey {
        case role, content
        case toolCalls = "tool_calls"
        case toolCallID = "tool_call_id"
        case reasoningContent = "reasoning_content"
    }
}

/// A call of a function that the model asks for. In chunks, pieces of one: `index` says of which.
public struct ToolCall: Codable, Equatable, Sendable {
    public struct Function: Codable, Equatable, Sendable {
        public var name: String?
        /// JSON, as the model wrote it.
        public var arguments: String?
    }
    public var index: Int?
    public var id: String?
    public var type: String?
    public var function: Function?
}

/// How a request is answered; names and meanings are OpenAI's. What is not set is the model's own.
public struct Settings: Codable, Equatable, Sendable {
    /// At most so many tokens; nil: until the model ends or the context does.
    public var maxTokens: Int?
    /// 0 takes the likeliest token each time.
    public var temperature: Double?
    public var topP: Double?
    /// The same seed gives the same answer.
    public var seed: Int64?
    /// Texts that end the answer.
    public var stop: [String]?
    /// Answers that are wanted.
    public var n: Int?
    public var presencePenalty: Double?
    public var frequencyPenalty: Double?
    /// Functions that the model may ask for, as OpenAI writes them.
    public var tools: [JSONValue]?
    /// Any other field.
    public var more: [String: JSONValue] = [:]

    public init(
        maxTokens: Int? = nil, temperature: Double? = nil, topP: Double? = nil, seed: Int64? = nil,
        stop: [String]? = nil, tools: [JSONValue]? = nil, more: [String: JSONValue] = [:]
    ) {
        self.maxTokens = maxTokens
        self.temperature = temperature
        self.topP = topP
        self.seed = seed
        self.stop = stop
        self.tools = tools
        self.more = more
    }

    enum CodingKeys: String, CodingKey {
        case maxTokens = "max_tokens"
        case temperature
        case topP = "top_p"
        case seed, stop, n
        case presencePenalty = "presence_penalty"
        case frequencyPenalty = "frequency_penalty"
        case tools
    }
}

/// A request as JSON: its settings, what they have more, and these fields.
func requestJSON(_ settings: Settings, _ fields: [String: JSONValue]) throws -> Data {
    let known = try JSONDecoder().decode(
        [String: JSONValue].self, from: try JSONEncoder().encode(settings))
    let all = known.merging(settings.more) { $1 }.merging(fields) { $1 }
    return try JSONEncoder().encode(all)
}

func jsonValue(_ messages: [Message]) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: try JSONEncoder().encode(messages))
}
