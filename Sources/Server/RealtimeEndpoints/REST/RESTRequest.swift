// A REST request, parsed from its head. The checks here need no database.

import Access
import JSON
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel

/// A request for the data of a location.
struct RESTRequest: Sendable {
  enum Method: Sendable {
    case get, put, post, patch, delete
  }

  enum Printing: Sendable {
    case compact, pretty, silent
  }

  /// A condition on the hash of the stored value.
  enum Condition: Sendable, Equatable {
    case none
    case ifMatch(String)
    case ifNoneMatch(String)
  }

  var method: Method
  var path: Path
  var namespace: String
  var caller: Principal
  var query: QuerySpec?
  var isShallow = false
  var isExport = false
  var printing = Printing.compact
  var callback: String?
  var download: String?
  var condition = Condition.none
  var wantsETag = false
  /// The time at which a read times out.
  var deadline: ContinuousClock.Instant
  /// The requested class of the write (see WriteSizeLimit); nil to use the database's setting.
  var writeSizeLimit: WriteSizeLimit?
  /// Whether the request has a `timeout` parameter.
  var hasTimeout = false
  var wantsEventStream = false
  /// The reader that extracts the value from an upload's form; nil if the body is the value.
  var form: FormFileReader?

  /// Parses the head of a request.
  ///
  /// - Throws: ``RESTError`` for the first error.
  init(_ head: HTTPRequestHead, _ target: RequestTarget, _ endpoint: RealtimeEndpoint) throws(RESTError) {
    var target = target
    form = try Self.form(head, &target)
    path = try Self.path(target, endpoint.limits.data)
    method = form == nil ? try Self.method(head, target) : .put
    namespace = endpoint.namespace(parameter: target["ns"], host: head.headers.first(name: "host"))
    caller = .nobody
    deadline = .now + .seconds(endpoint.limits.data.readSeconds)
    do throws(RealtimeError) {
      caller = try endpoint.authentication.caller(
        credential: try Self.credential(head, target), override: try Self.override(target))
    } catch {
      throw RESTError(error)
    }
    try readOutputOptions(target, endpoint.limits.data)
    if form != nil { printing = .silent }
    try readQuery(target)
    try readCondition(head)
    if head.method == .GET {
      wantsEventStream = head.headers[canonicalForm: "accept"].contains {
        $0.lowercased().hasPrefix("text/event-stream")
      }
    }
    if wantsEventStream, isShallow {
      throw RESTError(.badRequest, "shallow is not supported for event streams")
    }
  }

  /// Returns the form of an upload. The upload is handled as a PUT of the file in the form.
  private static func form(
    _ head: HTTPRequestHead, _ target: inout RequestTarget
  ) throws(RESTError) -> FormFileReader? {
    guard head.method == .POST, target.rawPath.hasSuffix("/.upload") else { return nil }
    guard let form = head.headers.first(name: "content-type").flatMap(FormFileReader.init) else {
      throw RESTError(.badRequest, "A file must be uploaded as multipart/form-data.")
    }
    target.rawPath = target.rawPath.dropLast("upload".count) + "json"
    return form
  }

  /// Returns the value of a complete body.
  func content(of body: ByteBuffer) throws(RESTError) -> ByteBuffer {
    guard var form else { return body }
    let content = try form.read(Array(body.readableBytesView))
    try form.finish()
    return ByteBuffer(bytes: content)
  }

  private static func path(
    _ target: RequestTarget, _ limits: RealtimeLimits
  ) throws(RESTError) -> Path {
    let invalid = RESTError(.badRequest, "Invalid path: Invalid token in path")
    guard target.rawPath.hasSuffix(".json") || target.rawPath.hasSuffix(".json/") else {
      throw RESTError(.notFound, "append .json to your request URI to use the REST API.")
    }
    guard var segments = target.segments, let last = segments.popLast(), last.hasSuffix(".json") else {
      throw invalid
    }
    let name = String(last.dropLast(5))
    if !name.isEmpty { segments.append(name) }
    // A percent-encoded slash does not separate keys, so it would be part of a key. Keys must not contain
    // slashes.
    guard segments.allSatisfy({ !$0.utf8.contains(UInt8(ascii: "/")) }) else { throw invalid }
    do throws(RealtimeError) {
      return try Path(validating: segments.joined(separator: "/"), allowingPriority: true, limits: limits)
    } catch {
      throw RESTError(error)
    }
  }

  private static func method(_ head: HTTPRequestHead, _ target: RequestTarget) throws(RESTError) -> Method {
    var name = head.method.rawValue
    if head.method == .POST,
      let override = head.headers.first(name: "x-http-method-override") ?? target["x-http-method-override"]
    {
      name = override.uppercased()
    }
    switch name {
    case "GET", "HEAD": return .get
    case "PUT": return .put
    case "POST": return .post
    case "PATCH": return .patch
    case "DELETE": return .delete
    default: throw RESTError(.methodNotAllowed, "Method \(name) is not supported.")
    }
  }

  /// Returns the error if the request's credential is rejected; nil otherwise. Needs only the head, so that
  /// no body is buffered for a rejected request.
  static func rejection(of head: HTTPRequestHead, _ endpoint: RealtimeEndpoint) -> RESTError? {
    guard head.method != .OPTIONS, endpoint.authentication.mayReject else { return nil }
    let path = head.uri.prefix { $0 != "?" }
    guard path != "/.ws", path != "/.lp" else { return nil }
    do throws(RealtimeError) {
      let credential = try credential(head, try? RequestTarget(head.uri))
      return endpoint.authentication.rejection(of: credential).map { RESTError($0) }
    } catch {
      return RESTError(error)
    }
  }

  /// The credential of a request, which its headers and its parameters may contain.
  /// - Throws: ``RealtimeError`` with the status `invalid_token` if it contains different credentials.
  private static func credential(
    _ head: HTTPRequestHead, _ target: RequestTarget?
  ) throws(RealtimeError) -> String? {
    var tokens = head.headers["authorization"].map { header in
      let parts = header.split(separator: " ", maxSplits: 1)
      return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : header
    }
    for parameter in target?.parameters ?? []
    where !parameter.value.isEmpty && ["access_token", "auth"].contains(parameter.name) {
      tokens.append(parameter.value)
    }
    do throws(InvalidCredential) { return try InvalidCredential.singleToken(tokens) } catch {
      throw RealtimeAuthentication.invalidToken
    }
  }

  private static func override(
    _ target: RequestTarget
  ) throws(RealtimeError) -> RealtimeAuthentication.Override? {
    guard let text = target["auth_variable_override"] else { return nil }
    guard let variable = try? JSONValue(json: Array(text.utf8)),
      let override = RealtimeAuthentication.Override(variable)
    else { throw RealtimeError(.failure, "auth_variable_override must be valid JSON: an object or null") }
    return override
  }

  private mutating func readOutputOptions(
    _ target: RequestTarget, _ limits: RealtimeLimits
  ) throws(RESTError) {
    switch target["print"] {
    case nil, "": printing = .compact
    case "pretty": printing = .pretty
    case "silent": printing = .silent
    default: throw RESTError(.badRequest, "print must be 'pretty' or 'silent'")
    }
    switch target["format"] {
    case nil, "", "strict": break
    case "export": isExport = true
    default: throw RESTError(.badRequest, "format must be 'export'")
    }
    if let name = target["callback"] {
      guard !name.isEmpty, name.utf8.allSatisfy(Self.isNameByte) else {
        throw RESTError(.badRequest, "callback must be the name of a function")
      }
      callback = name
    }
    if let name = target["download"], !name.isEmpty {
      download = String(
        name.unicodeScalars.filter { $0.value >= 0x20 && $0 != "\"" && $0 != "\\" && $0.isASCII })
    }
    if let text = target["timeout"] {
      deadline = .now + (try Self.duration(text, atMost: limits.readSeconds))
      hasTimeout = true
    }
    if let size = target["writeSizeLimit"] {
      writeSizeLimit = WriteSizeLimit(rawValue: size)
      guard writeSizeLimit != nil else {
        throw RESTError(.badRequest, "writeSizeLimit must be tiny, small, medium, large or unlimited")
      }
    }
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "."): true
    default: false
    }
  }

  /// Parses a time with a unit.
  private static func duration(_ text: String, atMost seconds: Int) throws(RESTError) -> Duration {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let milliseconds: [Substring: Int] = ["ms": 1, "s": 1000, "min": 60_000]
    guard let value = Int(digits), let unit = milliseconds[text.dropFirst(digits.count)],
      value > 0, value <= seconds * 1000 / unit
    else {
      let maximum = seconds.isMultiple(of: 60) ? "\(seconds / 60) minutes" : "\(seconds) seconds"
      throw RESTError(.badRequest, "timeout must be a time of at most \(maximum), such as 10s, 300ms or 3min")
    }
    return .milliseconds(value * unit)
  }

  private mutating func readQuery(_ target: RequestTarget) throws(RESTError) {
    guard method == .get else { return }
    isShallow = target["shallow"] == "true"
    query = try RESTQuery.query(target, isShallow: isShallow)
    if isShallow, target["orderBy"] != nil {
      throw RESTError(.badRequest, "shallow cannot be combined with orderBy")
    }
    if query != nil, path.isPriority { throw RESTError(.badRequest, "Invalid path: Invalid token in path") }
  }

  private mutating func readCondition(_ head: HTTPRequestHead) throws(RESTError) {
    let match = try Self.tags(head, "if-match")
    let noneMatch = try Self.tags(head, "if-none-match")
    wantsETag = head.headers.first(name: "x-firebase-etag")?.lowercased() == "true"
    guard match.count + noneMatch.count <= 1 else {
      throw RESTError(.badRequest, "Only one ETag may be specified")
    }
    if let tag = match.first {
      guard method == .put || method == .delete else {
        throw RESTError(.badRequest, "if-match is only supported for PUT and DELETE")
      }
      condition = .ifMatch(tag)
    } else if let tag = noneMatch.first {
      guard method == .get else { throw RESTError(.badRequest, "if-none-match is only supported for GET") }
      condition = .ifNoneMatch(tag)
    }
    if condition != .none { wantsETag = true }
    if wantsETag, isShallow || query != nil {
      throw RESTError(.badRequest, "ETags are not supported together with query parameters")
    }
  }

  /// Returns the ETags of a header. Rejects an empty ETag: if it were ignored, the write would run without its
  /// condition.
  private static func tags(_ head: HTTPRequestHead, _ name: String) throws(RESTError) -> [String] {
    let tags = head.headers[canonicalForm: name].map(unquoted)
    guard !tags.contains(""), !tags.isEmpty || !head.headers.contains(name: name) else {
      throw RESTError(.badRequest, "\(name) must name an ETag")
    }
    return tags
  }

  private static func unquoted(_ tag: Substring) -> String {
    tag.count >= 2 && tag.first == "\"" && tag.last == "\"" ? String(tag.dropFirst().dropLast()) : String(tag)
  }
}
