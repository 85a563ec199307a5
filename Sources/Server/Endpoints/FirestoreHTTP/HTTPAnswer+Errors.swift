// Answers by kind, and errors as the product's JSON: the same code and message as over gRPC.

import FirestoreModel
import NIOCore
import NIOHTTP1
import RealtimeModel

extension HTTPAnswer {
  /// Plain text.
  static func text(_ status: HTTPResponseStatus, _ text: String) -> HTTPAnswer {
    HTTPAnswer(
      status: status, headers: ["content-type": "text/plain; charset=utf-8"], body: ByteBuffer(string: text))
  }

  /// JSON.
  static func json(_ status: HTTPResponseStatus, _ body: ByteBuffer) -> HTTPAnswer {
    HTTPAnswer(status: status, headers: jsonHeaders, body: body)
  }

  /// An error.
  /// - Parameter inArray: whether the method's answer is an array of messages; then so is its error.
  static func error(_ error: FirestoreError, inArray: Bool = false) -> HTTPAnswer {
    var writer = JSONWriter()
    if inArray { writer.beginArray() }
    writer.error(error)
    if inArray { writer.endArray() }
    writer.lineFeed()
    return .json(HTTPResponseStatus(statusCode: error.code.httpStatus), ByteBuffer(bytes: writer.bytes))
  }
}

extension JSONWriter {
  /// An object that holds an error; never with an empty message, which clients take for a broken answer.
  mutating func error(_ error: FirestoreError) {
    beginObject()
    key("error")
    beginObject()
    key("code")
    int(Int64(error.code.httpStatus))
    key("message")
    string(error.message.isEmpty ? "The call failed with \(error.code.name)." : error.message)
    key("status")
    string(error.code.name)
    endObject()
    endObject()
  }
}
