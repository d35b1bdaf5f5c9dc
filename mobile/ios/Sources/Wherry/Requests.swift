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
    /// The most tokens of the output; nil: until the model ends or the context does.
    public var maxTokens: Int?
    /// 0 takes the most likely token each time.
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
    /// What the text is held to.
    public var responseFormat: ResponseFormat?
    /// Whether a tool has to be called.
    public var toolChoice: ToolChoice?
    /// Any other field.
    public var more: [String: JSONValue] = [:]

    public init(
        maxTokens: Int? = nil, temperature: Double? = nil, topP: Double? = nil, seed: Int64? = nil,
        stop: [String]? = nil, tools: [JSONValue]? = nil, more: [String: JSONValue] = [:],
        responseFormat: ResponseFormat? = nil, toolChoice: ToolChoice? = nil
    ) {
        self.maxTokens = maxTokens
        self.temperature = temperature
        self.topP = topP
        self.seed = seed
        self.stop = stop
        self.tools = tools
        self.more = more
        self.responseFormat = responseFormat
        self.toolChoice = toolChoice
    }

    enum CodingKeys: String, CodingKey {
        case maxTokens = "max_tokens"
        case temperature
        case topP = "top_p"
        case seed, stop, n
        case presencePenalty = "presence_penalty"
        case frequencyPenalty = "frequency_penalty"
        case tools
        case responseFormat = "response_format"
        case toolChoice = "tool_choice"
    }
}

/// What an answer's text is held to, whatever the model would rather write.
public struct ResponseFormat: Codable, Equatable, Sendable {
    /// OpenAI's object.
    public var json: JSONValue

    public init(json: JSONValue) { self.json = json }
    public init(from decoder: Decoder) throws { json = try JSONValue(from: decoder) }
    public func encode(to encoder: Encoder) throws { try json.encode(to: encoder) }

    /// An object of JSON.
    public static let jsonObject = ResponseFormat(json: ["type": "json_object"])
    /// JSON that fits a JSON Schema; keywords that are not enforced are refused by name. The schema is
    /// a text, because its properties are written in its order, which a dictionary does not keep.
    public static func jsonSchema(_ schema: String, name: String = "answer") -> ResponseFormat {
        let inner: JSONValue = ["name": .string(name), "schema": .string(schema)]
        return ResponseFormat(json: ["type": "json_schema", "json_schema": inner])
    }
    /// A text that a regular expression matches as a whole.
    public static func regex(_ pattern: String) -> ResponseFormat {
        ResponseFormat(json: ["type": "regex", "pattern": .string(pattern)])
    }
    /// A text of a grammar, in GBNF; its first rule is `root`.
    public static func grammar(_ gbnf: String) -> ResponseFormat {
        ResponseFormat(json: ["type": "grammar", "grammar": .string(gbnf)])
    }
}

/// Whether tools are called.
public struct ToolChoice: Codable, Equatable, Sendable {
    /// OpenAI's value.
    public var json: JSONValue

    public init(json: JSONValue) { self.json = json }
    public init(from decoder: Decoder) throws { json = try JSONValue(from: decoder) }
    public func encode(to encoder: Encoder) throws { try json.encode(to: encoder) }

    /// As the model likes.
    public static let auto = ToolChoice(json: "auto")
    public static let none = ToolChoice(json: "none")
    /// At least one.
    public static let required = ToolChoice(json: "required")
    /// This one.
    public static func function(_ name: String) -> ToolChoice {
        ToolChoice(json: ["type": "function", "function": ["name": .string(name)]])
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
