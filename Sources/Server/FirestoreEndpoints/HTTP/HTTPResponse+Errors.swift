// Makes plain text, JSON and error responses. An error has the same code and message as over gRPC, in Google's JSON
// form.

import JSON
package import FirestoreModel
import GRPCFraming
package import NIOCore
package import NIOHTTP1
package import Ports
import RealtimeModel

extension HTTPResponse {
  /// A plain text response.
  package static func text(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["content-type": "text/plain; charset=utf-8"], body: ByteBuffer(string: text))
  }

  /// A JSON response.
  package static func json(_ status: HTTPResponseStatus, _ body: ByteBuffer) -> HTTPResponse {
    HTTPResponse(status: status, headers: jsonHeaders, body: body)
  }

  /// An error response.
  /// - Parameters:
  ///   - inArray: whether the error is an element of an array, as in the response of a streaming method.
  ///   - status: the HTTP status, if it is not that of the error's code.
  package static func error(
    _ error: FirestoreError, inArray: Bool = false, as status: HTTPResponseStatus? = nil
  ) -> HTTPResponse {
    let status = status ?? HTTPResponseStatus(statusCode: error.code.httpStatus)
    var writer = JSONWriter()
    if inArray { writer.beginArray() }
    writer.error(GRPCStatus(error), code: Int(status.code))
    if inArray { writer.endArray() }
    writer.lineFeed()
    return .json(status, ByteBuffer(bytes: writer.bytes))
  }
}

extension JSONWriter {
  /// Writes an error object, in the form of REST and WebChannel. The message is never empty, since clients treat an
  /// empty message as a malformed response.
  /// - Parameter code: the HTTP status over REST, or the number of the gRPC status code.
  mutating func error(_ status: GRPCStatus, code: Int) {
    beginObject()
    key("error")
    beginObject()
    key("code")
    int(Int64(code))
    key("message")
    string(status.message.isEmpty ? "The call failed with \(status.code.name)." : status.message)
    key("status")
    string(status.code.name)
    if !status.details.isEmpty {
      key("details")
      beginArray()
      details(status.details)
      endArray()
    }
    endObject()
    endObject()
  }

  private mutating func details(_ details: GRPCStatus.Details) {
    if !details.fieldViolations.isEmpty {
      beginObject()
      key("@type")
      string(GRPCStatus.Details.badRequestType)
      key("fieldViolations")
      beginArray()
      for violation in details.fieldViolations {
        beginObject()
        if !violation.field.isEmpty {
          key("field")
          string(violation.field)
        }
        key("description")
        string(violation.description)
        endObject()
      }
      endArray()
      endObject()
    }
    if !details.reason.isEmpty {
      beginObject()
      key("@type")
      string(GRPCStatus.Details.errorInfoType)
      key("reason")
      string(details.reason)
      key("domain")
      string(details.domain)
      endObject()
    }
  }
}
