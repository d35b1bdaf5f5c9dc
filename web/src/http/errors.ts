import { RequestError, WherryError } from "../errors.js";

/** An error of the HTTP interface, such as an unknown path, rather than of the engine. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  private constructor(status: number, code: string, message: string, headers = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }

  /** @param known the existing paths, without the base. */
  static unknownPath(route: string, known: readonly string[]): ApiError {
    const message = `There is no ${route} in a page. There are: ${known.join(", ")}.`;
    return new ApiError(404, "not_found", message);
  }

  /** @param allowed the methods of the path. */
  static wrongMethod(route: string, allowed: string): ApiError {
    const message = `${route}: the method is not allowed; use ${allowed}`;
    return new ApiError(405, "method_not_allowed", message, { Allow: allowed });
  }
}

/** The JSON body of an error response in OpenAI's API. */
export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: "invalid_request_error" | "server_error";
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** Return the response for an error, with the status and body that `wherry serve` would send. */
export function errorResponse(error: unknown): Response {
  const headers = error instanceof ApiError ? error.headers : {};
  return Response.json(errorBody(error), { status: statusOf(error), headers });
}

/** Return the JSON body for an error. */
export function errorBody(error: unknown): ErrorBody {
  const type = statusOf(error) >= 500 ? "server_error" : "invalid_request_error";
  const message = error instanceof Error ? error.message : String(error);
  const param = error instanceof RequestError ? error.param : undefined;
  return { error: { message, type, param: param ?? null, code: codeOf(error) ?? null } };
}

function statusOf(error: unknown): number {
  if (error instanceof ApiError) return error.status;
  if (!(error instanceof RequestError)) return 500;
  return error.reason === "model_not_found" ? 404 : 400;
}

function codeOf(error: unknown): string | undefined {
  if (error instanceof ApiError) return error.code;
  if (error instanceof RequestError) return error.reason;
  return error instanceof WherryError ? "engine_error" : "internal_error";
}
