// Binds a REST request to a gRPC method by its HTTP method and its path, which may end with a verb such as `:commit`.
// Fields from the path override those from the body.

import FirestoreModel
import NIOCore
import NIOHTTP1
import Ports

/// One REST request, as a call of a gRPC method.
struct FirestoreRESTCall: Sendable {
  /// The content of the body.
  private enum Body: Sendable {
    case none
    /// The request message.
    case message
    /// The document in the request message. The number is that of the document's field. The name comes from the path;
    /// nil if the path does not contain it.
    case document(Int, name: String?)
  }

  private(set) var method: FirestoreRESTMethod
  private var body = Body.none
  /// The fields that the path sets, by number.
  private var fields: [(number: Int, text: String)] = []
  private var parameters: [FirestoreJSON.Parameter] = []
  /// The error of a request for an unsupported response format. The initializer still succeeds, since a rejected Commit
  /// must end its transaction.
  private(set) var formatError: FirestoreError?

  /// Binds a request. Returns nil if no gRPC method has its HTTP method and path.
  /// - Throws: INVALID_ARGUMENT for a path that cannot be decoded.
  init?(_ request: HTTPRequest) throws(FirestoreError) {
    guard let target = try Path(request.target) else { return nil }
    let verb = target.verb
    switch (Self.method(of: request), verb) {
    case ("POST", let verb?):
      if let method = FirestoreRESTMethod.ofParent[verb] {
        self.init(method, .message, [(1, target.name)])
      } else if let method = FirestoreRESTMethod.ofDatabase[verb], target.depth == 0 {
        self.init(method, .message, [(1, target.database)])
      } else {
        return nil
      }
    case ("GET", nil), ("HEAD", nil):
      if target.depth % 2 == 0 {
        self.init(.getDocument, .none, [(1, target.name)])
      } else {
        self.init(.listDocuments, .none, [(1, target.parent), (2, target.last)])
      }
    case ("POST", nil) where target.depth > 0:
      self.init(.createDocument, .document(4, name: nil), [(1, target.parent), (2, target.last)])
    case ("PATCH", nil): self.init(.updateDocument, .document(1, name: target.name), [])
    case ("DELETE", nil): self.init(.deleteDocument, .none, [(1, target.name)])
    default: return nil
    }
    parameters = Self.parameters(request.target)
    formatError = Self.formatError(of: request.target)
  }

  private init(_ method: FirestoreRESTMethod, _ body: Body, _ fields: [(number: Int, text: String)]) {
    self.method = method
    self.body = body
    self.fields = fields
  }

  /// Returns the request message in protobuf's wire format.
  func message(_ json: ByteBuffer) throws(FirestoreError) -> ByteBuffer {
    if let formatError { throw formatError }
    var writer = WireWriter(capacity: json.readableBytes + 256)
    var bodyField: String?
    switch body {
    case .none: break
    case .message: try FirestoreJSON.write(json, as: method.request, to: &writer)
    case .document(let number, let name):
      bodyField = "document"
      let open = writer.begin(number)
      try FirestoreJSON.write(json, as: .document, to: &writer)
      if let name { writer.string(1, name) }
      writer.end(open)
    }
    try FirestoreJSON.write(parameters, as: method.request, except: bodyField, to: &writer)
    for field in fields { writer.string(field.number, field.text) }
    return writer.finish()
  }

  /// Returns a CommitRequest with only the database and the transaction, for a Commit whose message is invalid. Returns
  /// nil if the body names no transaction before its first syntax error.
  func transaction(in json: ByteBuffer) -> ByteBuffer? {
    guard method.request == .commitRequest,
      let text = FirestoreJSON.text(of: "transaction", in: json)
        ?? parameters.first(where: { $0.name == "transaction" })?.text
    else { return nil }
    var writer = WireWriter(capacity: 256)
    for field in fields { writer.string(field.number, field.text) }
    guard JSONToken(parameter: text).write(.bytes, 3, to: &writer) else { return nil }
    return writer.finish()
  }

  /// The HTTP method. Clients that can only POST pass another one in a parameter or a header.
  private static func method(of request: HTTPRequest) -> String {
    guard request.head.method == .POST else { return request.head.method.rawValue }
    return
      (request.target["$httpMethod"] ?? request.head.headers.first(name: "x-http-method-override") ?? "POST")
      .uppercased()
  }

  /// Parameters of all Google APIs, which are not fields of the request.
  private static let commonParameters: Set<String> = [
    "key", "alt", "prettyPrint", "pp", "fields", "quotaUser", "userIp", "uploadType", "upload_protocol",
    "access_token", "oauth_token", "callback", "zx",
  ]

  private static func formatError(of target: RequestTarget) -> FirestoreError? {
    for (name, format) in target.parameters where name == "alt" || name == "$alt" {
      guard isSupportedFormat(format) else {
        return .invalidArgument("The parameter 'alt' must be 'json', and is '\(format.prefix(40))'.")
      }
    }
    if target["callback"] != nil || target["$callback"] != nil {
      return .invalidArgument("The parameter 'callback' is not supported: read the response as JSON.")
    }
    return nil
  }

  /// Whether a response format is supported: JSON, with or without the option for numeric enums that Google's generated
  /// clients add. The option has no effect, since no response contains an enum that it would change.
  private static func isSupportedFormat(_ format: String) -> Bool {
    let parts = format.lowercased().split(separator: ";", omittingEmptySubsequences: false)
    return parts.first == "json" && parts.dropFirst().allSatisfy { $0 == "enum-encoding=int" }
  }

  private static func parameters(_ target: RequestTarget) -> [FirestoreJSON.Parameter] {
    target.parameters.filter { !$0.name.hasPrefix("$") && !commonParameters.contains($0.name) }
      .map { FirestoreJSON.Parameter(name: $0.name, text: $0.value) }
  }
}

/// The parsed path of a request. It is split by bytes, since a slash with a combining mark is another `Character`.
private struct Path {
  /// `projects/P/databases/D`.
  var database: String
  /// The name of the root, a collection or a document: the path after the version.
  var name: String
  /// The number of segments after `documents`.
  var depth: Int
  /// The last segment.
  var last: String
  /// The name without its last segment.
  var parent: String
  /// The part after the last colon, if it names a method.
  var verb: String?

  /// Returns nil for a path outside of documents.
  init?(_ target: RequestTarget) throws(FirestoreError) {
    var raw = target.rawPath.pathSegments.dropFirst(2)
    // The verb is removed before decoding, since an encoded colon is part of a name.
    if let last = raw.last, let colon = last.utf8.lastIndex(of: UInt8(ascii: ":")) {
      let text = String(last[last.utf8.index(after: colon)...])
      if FirestoreRESTMethod.ofParent[text] != nil || FirestoreRESTMethod.ofDatabase[text] != nil {
        verb = text
        raw[raw.index(before: raw.endIndex)] = last[..<colon]
      }
    }
    var decoded: [String] = []
    for segment in raw {
      guard let text = RequestTarget.decode(segment, plusIsSpace: false) else {
        throw .invalidArgument(
          "The path contains '\(segment.prefix(100))', which is not valid percent-encoding.")
      }
      decoded.append(text)
    }
    name = decoded.joined(separator: "/")
    let parts = name.pathSegments
    guard parts.count >= 5, parts[0] == "projects", parts[2] == "databases", parts[4] == "documents" else {
      return nil
    }
    depth = parts.count - 5
    database = parts[..<4].joined(separator: "/")
    parent = parts.dropLast().joined(separator: "/")
    last = String(parts[parts.count - 1])
  }
}

extension String {
  /// The segments between slashes.
  package var pathSegments: [Substring] {
    utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
  }
}
