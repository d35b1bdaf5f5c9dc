package dev.wherry

/**
 * The base of Wherry's exceptions; [message] says what happened, what was found and what is
 * accepted.
 */
public sealed class WherryException(message: String) : Exception(message)

/** Thrown for a wrong argument or option; nothing was changed. */
public class InvalidArgumentException(message: String) : WherryException(message)

/** Thrown if a folder, a file or a function of a library does not exist. */
public class ModelNotFoundException(message: String) : WherryException(message)

/** Thrown if the device has less memory than the model needs. */
public class NotEnoughMemoryException(message: String) : WherryException(message)

/** Thrown if library, weights and engine are not of one version, or a file is damaged. */
public class IncompatibleModelException(message: String) : WherryException(message)

/**
 * Thrown if an address cannot be fetched: there is no connection, or its server refuses.
 *
 * @property httpStatus status of the server's response; null: there was none
 */
public class DownloadException(message: String, public val httpStatus: Int? = null) :
    WherryException(message)

/** Thrown if a downloaded file differs from the model's manifest, even after a second download. */
public class DamagedFileException(message: String) : WherryException(message)

/** Thrown if the disk has no room for a model. */
public class NotEnoughSpaceException(message: String) : WherryException(message)

/** Thrown if another download writes to the folder. */
public class FolderBusyException(message: String) : WherryException(message)

/** Thrown if the engine was closed before or during a call. */
public class EngineClosedException : WherryException("The engine is closed; load the model again.")

/**
 * Thrown if an answer is not of the class that was asked for, as when its tokens ran out.
 *
 * @property text the answer as the model wrote it
 */
public class UnreadableAnswerException(message: String, public val text: String) : WherryException(message)

/** Thrown for a bug of Wherry, or an error inside the compiled model. */
public class InternalException(message: String) : WherryException(message)

/**
 * Thrown if a request was refused or has failed; the fields are those of OpenAI's error object.
 *
 * @property type the kind of error, such as "invalid_request_error"
 * @property param the wrong field of the request, if a single one is wrong
 * @property code a machine-readable name, such as "context_length_exceeded"
 */
public class RequestException(
    message: String,
    public val type: String?,
    public val param: String?,
    public val code: String?,
) : WherryException(message)
