import CWherry
import Foundation

/// The errors of Wherry; their texts say what happened, what was found and what is accepted.
public enum WherryError: Error, Equatable {
    /// An argument or an option is wrong; nothing was changed.
    case invalidArgument(String)
    /// A folder, a file or a function of a library does not exist.
    case notFound(String)
    /// The device has less memory than the model needs.
    case notEnoughMemory(String)
    /// Library, weights and engine are not of one version, or a file is damaged.
    case incompatible(String)
    /// A request was refused, or has failed.
    case request(APIError)
    /// An answer is not of the type that was asked for, as when its tokens ran out; its text is as the
    /// model wrote it.
    case unreadableAnswer(String, text: String)
    /// The engine was closed before or during a call.
    case closed
    /// An address cannot be fetched: its server refuses, or there is no connection (then no status
    /// either).
    case unreachable(String, httpStatus: Int?)
    /// A downloaded file differs from the model's manifest, even after a second download.
    case damaged(String)
    /// The disk has no room for a model.
    case noSpace(String)
    /// Another download writes to the folder.
    case busy(String)
    /// A bug of Wherry, or an error inside the compiled model.
    case internalError(String)
}

/// An error object in OpenAI's form.
public struct APIError: Codable, Equatable, Sendable {
    public var message: String
    /// The kind of error, such as "invalid_request_error".
    public var type: String?
    /// The wrong field of the request, if a single one is wrong.
    public var param: String?
    /// A machine-readable name, such as "context_length_exceeded".
    public var code: String?
}

extension WherryError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .invalidArgument(let text), .notFound(let text), .notEnoughMemory(let text),
            .incompatible(let text), .unreachable(let text, _), .damaged(let text),
            .noSpace(let text), .busy(let text), .internalError(let text),
            .unreadableAnswer(let text, _):
            return text
        case .request(let error):
            return error.message
        case .closed:
            return "The engine is closed; load the model again."
        }
    }
}

/// Creates the error for a status other than 0, on the thread of the call; a CancellationError if
/// the call was cancelled.
func failure(_ status: Int32) -> Error {
    let text = wherry_app_last_error().map { String(cString: $0) } ?? ""
    switch status {
    case WHERRY_INVALID_ARGUMENT.rawValue: return WherryError.invalidArgument(text)
    case WHERRY_NOT_FOUND.rawValue: return WherryError.notFound(text)
    case WHERRY_OUT_OF_MEMORY.rawValue: return WherryError.notEnoughMemory(text)
    case WHERRY_INCOMPATIBLE.rawValue: return WherryError.incompatible(text)
    case WHERRY_BUSY.rawValue: return WherryError.busy(text)
    case Int32(WHERRY_CANCELLED): return CancellationError()
    case Int32(WHERRY_UNREACHABLE): return WherryError.unreachable(text, httpStatus: nil)
    case Int32(WHERRY_DAMAGED): return WherryError.damaged(text)
    case WHERRY_NO_SPACE.rawValue: return WherryError.noSpace(text)
    default: return WherryError.internalError(text)
    }
}
