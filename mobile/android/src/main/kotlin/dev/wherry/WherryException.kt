package dev.wherry

/** What goes wrong in Wherry; [message] says what happened, what was found and what is accepted. */
public sealed class WherryException(message: String) : Exception(message)

/** An argument or an option is wrong; nothing was changed. */
public class InvalidArgumentException(message: String) : WherryException(message)

/** A folder, a file or a function of a library is not there. */
public class ModelNotFoundException(message: String) : WherryException(message)

/** The device has less memory than the model needs. */
public class NotEnoughMemoryException(message: String) : WherryException(message)

/** Library, weights and engine are not of one version, or a file is damaged. */
public class IncompatibleModelException(message: String) : WherryException(message)

/**
 * An address cannot be fetched: there is no connection, or its server refuses.
 *
 * @property httpStatus what the server said; null: nothing came
 */
public class DownloadException(message: String, public val httpStatus: Int? = null) :
    WherryException(message)

/** What comes is not what the model's manifest lists, also when it is fetched again. */
public class DamagedFileException(message: String) : WherryException(message)

/** The disk has no room for a model. */
public class NotEnoughSpaceException(message: String) : WherryException(message)

/** Another download writes to the folder. */
public class FolderBusyException(message: String) : WherryException(message)

/** The engine was closed before, or while, it was asked. */
public class EngineClosedException : WherryException("The engine is closed; load the model again.")

/** A mistake of Wherry's, or an error inside the compiled model. */
public class InternalException(message: String) : WherryException(message)

/**
 * A request was refused or has failed; the fields are those of OpenAI's error object.
 *
 * @property type what kind of error it is, "invalid_request_error"
 * @property param which field of the request is meant, if one is
 * @property code a word for programs, "context_length_exceeded"
 */
public class RequestException(
    message: String,
    public val type: String?,
    public val param: String?,
    public val code: String?,
) : WherryException(message)
