// The errors of the REST interface: a status code and a line of text.

import JSON
import NIOHTTP1
import Ports
import RealtimeModel

/// A rejected REST request.
struct RESTError: Error, Equatable {
  var status: HTTPResponseStatus
  var message: String

  init(_ status: HTTPResponseStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// Converts an error of the database. A denial gets the status 401, not 403.
  init(_ error: RealtimeError) {
    message = error.message
    switch error.status {
    case .permissionDenied, .invalidToken, .expiredToken: status = .unauthorized
    case .unavailable: status = .serviceUnavailable
    case .dataStale: status = .preconditionFailed
    default: status = .badRequest
    }
  }

  /// Converts any error. The text of an unexpected error stays internal.
  init(_ error: any Error) {
    switch error {
    case let error as RESTError: self = error
    case let failure as HTTPRequestFailure: self = RESTError(failure)
    case let error as RealtimeError: self = RESTError(error)
    default: self = RESTError(.internalServerError, "Internal server error.")
    }
  }

  /// The error of a request that the HTTP connection rejects.
  init(_ failure: HTTPRequestFailure) {
    switch failure {
    case .malformed(let reason): self.init(.badRequest, reason)
    case .forbidden(let reason): self.init(.forbidden, reason)
    case .bodyTimeout: self.init(.requestTimeout, "The request did not arrive completely in time.")
    case .bodyTooLarge: self.init(RealtimeError.writeTooBig)
    case .tooManyRequestBytes(let limit):
      self.init(
        .serviceUnavailable, "The requests under way on this connection exceed the limit of \(limit) bytes.")
    case .outOfMemory(let reason): self.init(.serviceUnavailable, reason)
    case .tooManyUnreadBytes(let limit):
      self.init(
        .serviceUnavailable,
        "The answers that wait to be read on this connection exceed the limit of \(limit) bytes.")
    case .unsupportedEncoding, .decompression:
      preconditionFailure("invariant: the Realtime Database accepts no compressed bodies")
    }
  }

  /// The error of a request that arrives while the server shuts down.
  static let draining = RESTError(.serviceUnavailable, "The server is shutting down.")

  /// The response body, as Firebase sends it.
  var body: [UInt8] {
    var writer = JSONWriter(pretty: true)
    writer.beginObject()
    writer.key("error")
    writer.string(message)
    writer.endObject()
    writer.lineFeed()
    return writer.bytes
  }
}
