// Answers by kind, and errors as the product's JSON: the same code and message as over gRPC.

import FirestoreModel
import GRPCFraming
import JSON
import NIOCore
import NIOHTTP1
import RealtimeModel

extension HTTPResponse {
  /// Plain text.
  static func text(_ status: HTTPResponseStatus, _ text: String) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: ["content-type": "text/plain; charset=utf-8"], body: ByteBuffer(string: text))
  }

  /// JSON.
  static func json(_ status: HTTPResponseStatus, _ body: ByteBuffer) -> HTTPResponse {
    HTTPResponse(status: status, headers: jsonHeaders, body: body)
  }

  /// An error.
  /// - Parameters:
  ///   - inArray: whether the method's answer is an array of messages; then so is its error.
  ///   - status: the status, where it is not the one of the error's code.
  static func error(
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
  /// An object that holds an error, in the form of REST and WebChannel; never with an empty message, which clients take
  /// for a broken answer.
  /// - Parameter code: the status of HTTP, or the canonical one.
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
