// A request to Firestore's REST interface, bound to the method that its verb and path name. What the path says goes over
// what the body says.

import FirestoreModel
import NIOCore
import NIOHTTP1

struct FirestoreRESTCall: Sendable {
  /// What the body is.
  private enum Body: Sendable {
    case none
    /// The request message.
    case whole
    /// The request's document, in this field; its name if the path gives it.
    case document(Int, name: String?)
  }

  private(set) var method: FirestoreRESTMethod
  private var body = Body.none
  /// What the path says, by the numbers of the request's fields.
  private var fields: [(number: Int, text: String)] = []
  private var parameters: [FirestoreJSON.Parameter] = []
  /// Why the call is not served, whatever it says: it asks for an answer in a form that there is not. The call is bound
  /// all the same, since a Commit that is refused ends its transaction.
  private(set) var refusal: FirestoreError?

  /// Binds a request; nil where nothing is bound to its verb and path.
  /// - Throws: INVALID_ARGUMENT for a path that cannot be read.
  init?(_ request: HTTPRequest) throws(FirestoreError) {
    guard let target = try Path(request.target) else { return nil }
    let verb = target.verb
    switch (Self.method(of: request), verb) {
    case ("POST", let verb?):
      if let method = FirestoreRESTMethod.ofParent[verb] {
        self.init(method, .whole, [(1, target.name)])
      } else if let method = FirestoreRESTMethod.ofDatabase[verb], target.depth == 0 {
        self.init(method, .whole, [(1, target.database)])
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
    refusal = Self.refusal(of: request.target)
  }

  private init(_ method: FirestoreRESTMethod, _ body: Body, _ fields: [(number: Int, text: String)]) {
    self.method = method
    self.body = body
    self.fields = fields
  }

  /// The request message as gRPC would carry it.
  func message(_ json: ByteBuffer) throws(FirestoreError) -> ByteBuffer {
    if let refusal { throw refusal }
    var writer = WireWriter(capacity: json.readableBytes + 256)
    var bound: String?
    switch body {
    case .none: break
    case .whole: try FirestoreJSON.write(json, as: method.request, to: &writer)
    case .document(let number, let name):
      bound = "document"
      let open = writer.begin(number)
      try FirestoreJSON.write(json, as: .document, to: &writer)
      if let name { writer.string(1, name) }
      writer.end(open)
    }
    try FirestoreJSON.write(parameters, as: method.request, except: bound, to: &writer)
    for field in fields { writer.string(field.number, field.text) }
    return writer.finish()
  }

  /// What a Commit whose message cannot be made names for certain: its database and its transaction, as a message. Nil if
  /// it names no transaction, or not before the place where its body stops being JSON.
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

  /// The verb of HTTP. Scripts that may not send every verb say it in a parameter or header of a POST.
  private static func method(of request: HTTPRequest) -> String {
    guard request.head.method == .POST else { return request.head.method.rawValue }
    return
      (request.target["$httpMethod"] ?? request.head.headers.first(name: "x-http-method-override") ?? "POST")
      .uppercased()
  }

  /// Parameters of every method of the product, which concern how, and not what, is asked.
  private static let common: Set<String> = [
    "key", "alt", "prettyPrint", "pp", "fields", "quotaUser", "userIp", "uploadType", "upload_protocol",
    "access_token", "oauth_token", "callback", "zx",
  ]

  private static func refusal(of target: RequestTarget) -> FirestoreError? {
    for (name, format) in target.parameters where name == "alt" || name == "$alt" {
      guard isServed(format) else {
        return .invalidArgument("The parameter 'alt' must be 'json', and is '\(format.prefix(40))'.")
      }
    }
    if target["callback"] != nil || target["$callback"] != nil {
      return .invalidArgument("The parameter 'callback' is not supported: read the answer as JSON.")
    }
    return nil
  }

  /// Whether answers come in a form: JSON, also with the option that Google's generated clients give, numbers for
  /// enumerations, of which the answers have none.
  private static func isServed(_ format: String) -> Bool {
    let parts = format.lowercased().split(separator: ";", omittingEmptySubsequences: false)
    return parts.first == "json" && parts.dropFirst().allSatisfy { $0 == "enum-encoding=int" }
  }

  private static func parameters(_ target: RequestTarget) -> [FirestoreJSON.Parameter] {
    target.parameters.filter { !$0.name.hasPrefix("$") && !common.contains($0.name) }
      .map { FirestoreJSON.Parameter(name: $0.name, text: $0.value) }
  }
}

/// The path of a request, taken apart. All of it by bytes: a slash with a combining mark behind it is one `Character`.
private struct Path {
  /// `projects/P/databases/D`.
  var database: String
  /// The name of the root, a collection or a document: everything behind the version.
  var name: String
  /// How many segments come behind `documents`.
  var depth: Int
  /// The last segment.
  var last: String
  /// The name without its last segment.
  var parent: String
  /// What comes behind the last colon, if that is a verb.
  var verb: String?

  /// Nil for a path that is not of documents.
  init?(_ target: RequestTarget) throws(FirestoreError) {
    var raw = target.rawPath.pathSegments.dropFirst(2)
    // The verb is cut off before anything is decoded: an encoded colon belongs to a name.
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
        throw .invalidArgument("The path holds '\(segment.prefix(100))', which is no valid percent-encoding.")
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
  /// What stands between slashes.
  var pathSegments: [Substring] {
    utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
  }
}
