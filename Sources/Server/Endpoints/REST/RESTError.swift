// Errors as the REST interface tells them: a status code and one line of text.

import JSON
import NIOHTTP1
import RealtimeModel

/// A refused REST request.
struct RESTError: Error, Equatable {
  var status: HTTPResponseStatus
  var message: String

  init(_ status: HTTPResponseStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The error of the databases in the terms of REST. Denial is 401 here, not 403.
  init(_ error: RealtimeError) {
    message = error.message
    switch error.status {
    case .permissionDenied, .invalidToken, .expiredToken: status = .unauthorized
    case .unavailable: status = .serviceUnavailable
    case .dataStale: status = .preconditionFailed
    default: status = .badRequest
    }
  }

  /// Any error; what is no error of the databases is not told to strangers.
  init(_ error: any Error) {
    switch error {
    case let error as RESTError: self = error
    case let error as RealtimeError: self = RESTError(error)
    default: self = RESTError(.internalServerError, "Internal server error.")
    }
  }

  /// The body the product sends.
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
