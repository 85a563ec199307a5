// The method `test`: compiles a source, and decides the cases of a test suite.
//
// A case has the request and the stored document in the form of the hosted product. Results of `get` and `exists`
// come from function mocks; every other document is missing.

import Access
import FirestoreEngine
import FirestoreModel
import JSON
import Ports
import SecurityRules

/// The files of a source.
enum RulesRequestBody {
  /// Reads `source.files`.
  /// - Throws: INVALID_ARGUMENT for a body without files.
  static func files(_ body: JSONObject) throws(FirestoreError) -> [StoredRuleset.File] {
    guard let list = body["source"]?["files"]?.array, !list.isEmpty else {
      throw .invalidArgument(
        "The body must have a source: {\"source\": {\"files\": [{\"name\": \"firestore.rules\", \"content\": \"…\"}]}}"
      )
    }
    var files: [StoredRuleset.File] = []
    for element in list {
      guard let content = element["content"]?.string else {
        throw .invalidArgument("Each file of the source must have its text as 'content'.")
      }
      files.append(StoredRuleset.File(name: element["name"]?.string ?? "firestore.rules", content: content))
    }
    return files
  }
}

/// The method `test`.
enum RulesTest {
  /// Maximum cases of one request.
  static let maximumCases = 1_000

  /// Compiles files, and decides the cases of `testSuite` by the first one. Cases are not decided if a file has errors.
  /// - Throws: INVALID_ARGUMENT for a malformed case.
  static func response(
    _ files: [StoredRuleset.File], _ body: JSONObject
  ) throws(FirestoreError) -> JSONObject {
    var issues: [JSONValue] = []
    var first: FirestoreRuleset?
    var hasErrors = false
    for file in files {
      do throws(RulesError) {
        let ruleset = try FirestoreRuleset(compiling: file.content)
        if first == nil { first = ruleset }
        issues += ruleset.warnings.map { $0.json(in: file.name) }
      } catch {
        hasErrors = true
        issues += error.issues.map { $0.json(in: file.name) }
      }
    }
    var response = JSONObject()
    if !issues.isEmpty { response["issues"] = .array(issues) }
    guard !hasErrors, let first, let cases = body["testSuite"]?["testCases"]?.array else { return response }
    guard cases.count <= maximumCases else {
      throw .invalidArgument("A test suite may have at most \(maximumCases) cases.")
    }
    var results: [JSONValue] = []
    for (index, element) in cases.enumerated() {
      guard let object = element.object else {
        throw .invalidArgument("testSuite.testCases[\(index)] is no object.")
      }
      results.append(.object(try RulesTestCase(object, at: index).result(of: first, in: files[0].name)))
    }
    if !results.isEmpty { response["testResults"] = .array(results) }
    return response
  }
}

/// One case of a test suite.
struct RulesTestCase {
  private var request: FirestoreCase
  private let expectsDenial: Bool

  /// Reads a case.
  /// - Throws: INVALID_ARGUMENT for a malformed case, UNIMPLEMENTED for reports of expressions and mocks of other
  ///   functions.
  init(_ object: JSONObject, at index: Int) throws(FirestoreError) {
    func invalid(_ text: String) -> FirestoreError {
      .invalidArgument("testSuite.testCases[\(index)]: \(text)")
    }
    switch object["expectation"]?.string {
    case "ALLOW"?: expectsDenial = false
    case "DENY"?: expectsDenial = true
    default: throw invalid("the expectation must be ALLOW or DENY.")
    }
    if let level = object["expressionReportLevel"]?.string, !["NONE", "LEVEL_UNSPECIFIED"].contains(level) {
      throw .unimplemented("Reports of expressions are not available in tests.")
    }
    guard let fields = object["request"]?.object,
      let method = fields["method"]?.string.flatMap(RuleMethod.init(rawValue:))
    else { throw invalid("the request must have a method: get, list, create, update or delete.") }
    let isPlain = object["pathEncoding"]?.string == "PLAIN"
    guard let text = fields["path"]?.string, let (database, path) = Self.path(text, isPlain: isPlain) else {
      throw invalid("the request must have a path below /databases/DATABASE/documents.")
    }
    var time = Timestamp.now
    if let value = fields["time"] {
      guard let stated = value.string.flatMap(Timestamp.init(rfc3339:)) else {
        throw invalid("the time of the request is malformed.")
      }
      time = stated
    }
    request = FirestoreCase(method: method, path: path, time: time)
    request.database = database
    if let auth = fields["auth"]?.object {
      let claims = auth["token"]?.object ?? JSONObject()
      request.caller = RuleCaller(uid: auth["uid"]?.string ?? "", claims: Claims(claims).fields)
    }
    request.before = Self.fields(object["resource"])
    request.after = Self.fields(fields["resource"])
    if let query = fields["query"] {
      let collection = path.segments.count.isMultiple(of: 2) ? path.parent ?? .root : path
      request.query = RuleQuery(
        parent: collection.parent ?? .root, collectionID: collection.segments.last,
        shape: RuleQueryShape(limit: query["limit"]?.int, offset: query["offset"]?.int ?? 0))
    }
    for mock in object["functionMocks"]?.array ?? [] { try add(mock, isPlain: isPlain) }
  }

  /// Decides the case.
  func result(of ruleset: FirestoreRuleset, in file: String) -> JSONObject {
    let (decision, explanation) = request.explainedDecision(by: ruleset)
    var result: JSONObject = ["state": .string(decision.isAllowed != expectsDenial ? "SUCCESS" : "FAILURE")]
    let calls = decision.dependencies.map { path -> JSONValue in
      let name = "/databases/\(request.database)/documents/\(path)"
      return .object(["function": .string("get"), "args": .array([.string(name)])])
    }
    if !calls.isEmpty { result["functionCalls"] = .array(calls) }
    guard decision.isAllowed == expectsDenial, let explanation else { return result }
    result["debugMessages"] = .array([.string(explanation.report)])
    if let statement = explanation.statements.first {
      let position = statement.faultPosition ?? statement.position
      result["errorPosition"] = .object([
        "fileName": .string(file), "line": .int(Int64(position.line)), "column": .int(Int64(position.column)),
      ])
    }
    return result
  }

  /// Splits `/databases/DATABASE/documents/…`; nil for another path.
  private static func path(_ text: String, isPlain: Bool) -> (database: String, path: ResourcePath)? {
    var segments: [String] = []
    for segment in text.split(separator: "/") {
      guard let segment = isPlain ? String(segment) : RequestTarget.decode(segment, plusIsSpace: false) else {
        return nil
      }
      segments.append(segment)
    }
    guard segments.count > 3, segments[0] == "databases", segments[2] == "documents" else { return nil }
    return (segments[1], ResourcePath(Array(segments[3...])))
  }

  private static func fields(_ resource: JSONValue?) -> MapValue? {
    resource?.object.map { Claims($0["data"]?.object ?? JSONObject()).fields }
  }

  // MARK: Mocks

  /// Adds the document that a mock describes. `exists` describes an empty document, unless a `get` describes it too.
  private mutating func add(_ mock: JSONValue, isPlain: Bool) throws(FirestoreError) {
    let name = mock["function"]?.string ?? ""
    guard ["get", "getAfter", "exists", "existsAfter"].contains(name) else {
      throw .unimplemented(
        "Only get, getAfter, exists and existsAfter can be mocked, not '\(name.prefix(40))'.")
    }
    let value = mock["result"]?["value"]
    var document: MapValue?
    if name.hasPrefix("exists") {
      if value == .bool(true) { document = MapValue() }
    } else if let object = value?.object {
      document = Claims(object["data"]?.object ?? JSONObject()).fields
    }
    guard let argument = mock["args"]?.array?.first else {
      throw .invalidArgument("A mock of \(name) must have the path as its argument.")
    }
    guard let text = argument["exactValue"]?.string else {
      request.documents.others = request.documents.others ?? document
      return
    }
    guard let (_, path) = Self.path(text, isPlain: isPlain) else {
      throw .invalidArgument(
        "The argument of a mock of \(name) must be a path below /databases/DATABASE/documents.")
    }
    if name.hasPrefix("exists"), request.documents.fields[path] != nil { return }
    request.documents.fields[path] = document
  }
}
