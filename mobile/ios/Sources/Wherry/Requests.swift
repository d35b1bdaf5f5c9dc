import Foundation

/// One message of a conversation.
public struct Message: Codable, Equatable, Sendable {
    public var role: String
    public var content: String?
    /// Tool calls in an assistant's message.
    public var toolCalls: [ToolCall]?
    /// In a message with a tool's result, the id of the call that it answers.
    public var toolCallID: String?
    /// Reasoning that the model wrote before its answer.
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
    /// Creates the message with the result of a tool call.
    public static func tool(_ callID: String, _ result: String) -> Message {
        var message = Message(role: "tool", content: result)
        message.toolCallID = callID
        return message
    }

    enum CodingKeys: String, CodingKey {
        case role, content
        case toolCalls = "tool_calls"
        case toolCallID = "tool_call_id"
        case reasoningContent = "reasoning_content"
    }
}

/// A call of a function that the model asks for; in a chunk a piece of a call, which `index`
/// identifies.
public struct ToolCall: Codable, Equatable, Sendable {
    public struct Function: Codable, Equatable, Sendable {
        public var name: String?
        /// The arguments in JSON, as the model wrote them.
        public var arguments: String?
    }
    public var index: Int?
    public var id: String?
    public var type: String?
    public var function: Function?
}

/// Settings of a request; names and meanings are OpenAI's. Missing settings have the model's own
/// defaults.
public struct Settings: Codable, Equatable, Sendable, RequestSettings {
    /// Maximum number of output tokens; nil: until the model or the context ends.
    public var maxTokens: Int?
    /// Temperature of sampling; 0 takes the most likely token each time.
    public var temperature: Double?
    public var topP: Double?
    /// Seed of sampling; the same seed gives the same answer.
    public var seed: Int64?
    /// Texts that end the answer.
    public var stop: [String]?
    /// Number of answers to the prompt.
    public var n: Int?
    public var presencePenalty: Double?
    public var frequencyPenalty: Double?
    /// Functions that the model may call, as OpenAI's objects.
    public var tools: [JSONValue]?
    /// Format to which the text is constrained.
    public var responseFormat: ResponseFormat?
    /// Whether the model must call a tool.
    public var toolChoice: ToolChoice?
    /// Further fields of the request.
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

/// The format to which an answer's text is constrained.
public struct ResponseFormat: Codable, Equatable, Sendable {
    /// The format as OpenAI's object.
    public var json: JSONValue

    public init(json: JSONValue) { self.json = json }
    public init(from decoder: Decoder) throws { json = try JSONValue(from: decoder) }
    public func encode(to encoder: Encoder) throws { try json.encode(to: encoder) }

    /// Constrains the text to any JSON object.
    public static let jsonObject = ResponseFormat(json: ["type": "json_object"])
    /// Constrains the text to JSON that matches a JSON Schema; keywords that cannot be enforced are
    /// errors. The schema is a text, because the order of its properties matters, which a
    /// dictionary does not preserve.
    public static func jsonSchema(_ schema: String, name: String = "answer") -> ResponseFormat {
        let inner: JSONValue = ["name": .string(name), "schema": .string(schema)]
        return ResponseFormat(json: ["type": "json_schema", "json_schema": inner])
    }
    /// Constrains the text so that a regular expression matches it as a whole.
    public static func regex(_ pattern: String) -> ResponseFormat {
        ResponseFormat(json: ["type": "regex", "pattern": .string(pattern)])
    }
    /// Constrains the text to a grammar in GBNF, whose first rule is `root`.
    public static func grammar(_ gbnf: String) -> ResponseFormat {
        ResponseFormat(json: ["type": "grammar", "grammar": .string(gbnf)])
    }
}

/// Whether the model may or must call tools.
public struct ToolChoice: Codable, Equatable, Sendable {
    /// The choice as OpenAI's value.
    public var json: JSONValue

    public init(json: JSONValue) { self.json = json }
    public init(from decoder: Decoder) throws { json = try JSONValue(from: decoder) }
    public func encode(to encoder: Encoder) throws { try json.encode(to: encoder) }

    /// The model decides whether to call a tool.
    public static let auto = ToolChoice(json: "auto")
    public static let none = ToolChoice(json: "none")
    /// The model must call at least one tool.
    public static let required = ToolChoice(json: "required")
    /// The model must call the tool of this name.
    public static func function(_ name: String) -> ToolChoice {
        ToolChoice(json: ["type": "function", "function": ["name": .string(name)]])
    }
}

/// Settings of a request, with further fields.
protocol RequestSettings: Encodable {
    var more: [String: JSONValue] { get }
}

/// Encodes a request as JSON: its settings, their `more` fields, and these fields. Keys are sorted,
/// because the order of a dictionary changes at each start, and with it the prompt of a tool.
func requestJSON(_ settings: some RequestSettings, _ fields: [String: JSONValue]) throws -> Data {
    let known = try JSONDecoder().decode(
        [String: JSONValue].self, from: try encoded(settings))
    let all = known.merging(settings.more) { $1 }.merging(fields) { $1 }
    return try encoded(all)
}

func jsonValue(_ messages: [Message]) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: try encoded(messages))
}

private func encoded(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
        return try encoder.encode(value)
    } catch EncodingError.invalidValue(let wrong, let context) {
        let path = context.codingPath.map(\.stringValue).joined(separator: ".")
        throw WherryError.invalidArgument("\(path): \(wrong) is no number of JSON")
    }
}
