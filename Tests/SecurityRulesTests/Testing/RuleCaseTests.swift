// Tests rule cases: requests to both products that are decided without a server.

import JSON
import SecurityRules
import Testing

@Suite("Rule cases") struct RuleCaseTests {
  private static let firestore = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function isAdmin() { return get(/databases/$(database)/documents/users/$(request.auth.uid)).data.admin; }
        match /notes/{id} {
          allow get: if resource.data.owner == request.auth.uid;
          allow list: if resource.data.owner == request.auth.uid && request.query.limit <= 10;
          allow create: if request.resource.data.keys().hasOnly(['owner', 'at'])
            && request.resource.data.at == request.time;
          allow update: if request.auth.token.editor == true;
          allow delete: if isAdmin();
        }
      }
    }
    """

  private static let database = """
    {"rules": {"notes": {"$id": {
      ".read": "data.child('owner').val() == auth.uid",
      ".write": "auth != null && (!data.exists() || data.child('owner').val() == auth.uid)",
      ".validate": "newData.hasChildren(['owner', 'at']) && newData.child('at').val() <= now"
    }}, "list": {".read": "query.orderByChild == 'owner' && query.equalTo == auth.uid && query.limitToFirst <= 10"}}}
    """

  private func verdict(_ rules: String, _ request: String) throws -> RuleVerdict {
    let file = try RuleCaseFile(Array("{\"cases\": [\(request)]}".utf8))
    return try TestedRules(compiling: Array(rules.utf8)).decide(try #require(file.cases.first)).verdict
  }

  private static let documents = """
    "documents": {"notes/n": {"owner": "u"}, "users/a": {"admin": true}, "users/u": {"admin": false}}
    """

  @Test(
    "Requests to Cloud Firestore get the verdicts of the rules",
    arguments: [
      (#""method": "get", "path": "notes/n", "auth": {"uid": "u"}"#, RuleVerdict.allow),
      (#""method": "get", "path": "/databases/(default)/documents/notes/n", "auth": {"uid": "u"}"#, .allow),
      (#""method": "get", "path": "notes/n", "auth": null"#, .deny),
      (#""method": "get", "path": "notes/n", "auth": {"uid": "u"}, "resource": null"#, .deny),
      (#""method": "get", "path": "notes/m", "auth": {"uid": "u"}, "resource": {"owner": "u"}"#, .allow),
      (
        #""method": "list", "path": "notes", "auth": {"uid": "u"}, "query": {"where": [["owner", "==", "u"]], "limit": 10}"#,
        .allow
      ),
      (
        #""method": "list", "path": "notes", "auth": {"uid": "u"}, "query": {"where": [["owner", "in", ["u", "v"]]], "limit": 10}"#,
        .deny
      ),
      (
        #""method": "list", "path": "notes", "auth": {"uid": "u"}, "query": {"where": [["owner", "==", "u"]], "limit": 11}"#,
        .deny
      ),
      (#""method": "list", "path": "notes", "auth": {"uid": "u"}"#, .deny),
      (
        #""method": "create", "path": "notes/x", "time": "2030-01-01T00:00:00Z", "data": {"owner": "u", "at": {"timestampValue": "2030-01-01T00:00:00Z"}}"#,
        .allow
      ),
      (
        #""method": "create", "path": "notes/x", "time": "2030-01-01T00:00:01Z", "data": {"owner": "u", "at": {"timestampValue": "2030-01-01T00:00:00Z"}}"#,
        .deny
      ),
      (
        #""method": "update", "path": "notes/n", "data": {}, "auth": {"uid": "x", "token": {"editor": true}}"#,
        .allow
      ),
      (#""method": "update", "path": "notes/n", "data": {}, "auth": {"uid": "x"}"#, .deny),
      (#""method": "delete", "path": "notes/n", "auth": {"uid": "a"}"#, .allow),
      (#""method": "delete", "path": "notes/n", "auth": {"uid": "u"}"#, .deny),
      (#""method": "delete", "path": "notes/n", "auth": {"uid": "nobody"}"#, .deny),
    ])
  func firestore(request: String, expected: RuleVerdict) throws {
    #expect(try verdict(Self.firestore, "{\(request), \(Self.documents)}") == expected)
  }

  @Test(
    "Requests to the Realtime Database get the verdicts of the rules",
    arguments: [
      (#""method": "read", "path": "notes/n", "auth": {"uid": "u"}"#, RuleVerdict.allow),
      (#""method": "read", "path": "/notes/n/owner", "auth": {"uid": "u"}"#, .allow),
      (#""method": "read", "path": "notes", "auth": {"uid": "u"}"#, .deny),
      (
        #""method": "read", "path": "list", "auth": {"uid": "u"}, "query": {"orderBy": "owner", "equalTo": "u", "limitToFirst": 10}"#,
        .allow
      ),
      (
        #""method": "read", "path": "list", "auth": {"uid": "u"}, "query": {"orderBy": "owner", "equalTo": "u"}"#,
        .deny
      ),
      (
        #""method": "write", "path": "notes/x", "auth": {"uid": "v"}, "value": {"owner": "v", "at": {".sv": "timestamp"}}"#,
        .allow
      ),
      (
        #""method": "write", "path": "notes/n", "auth": {"uid": "v"}, "value": {"owner": "v", "at": 1}"#,
        .deny
      ),
      (#""method": "write", "path": "notes/x", "auth": {"uid": "v"}, "value": {"owner": "v"}"#, .deny),
      (
        #""method": "update", "path": "notes", "auth": {"uid": "u"}, "updates": {"n/at": 5, "x": {"owner": "u", "at": 6}}"#,
        .allow
      ),
      (
        #""method": "update", "path": "notes", "auth": {"uid": "u"}, "updates": {"n/at": 5, "x/owner": "u"}"#,
        .deny
      ),
      (#""method": "delete", "path": "notes/n", "auth": {"uid": "u"}"#, .allow),
      (#""method": "delete", "path": "notes/n", "auth": null"#, .deny),
    ])
  func realtime(request: String, expected: RuleVerdict) throws {
    let tree = #""tree": {"notes": {"n": {"owner": "u", "at": 1}}}"#
    #expect(try verdict(Self.database, "{\(request), \(tree)}") == expected)
  }

  @Test(
    "A malformed case causes an error that names the case",
    arguments: [
      (#"{"method": "get", "path": "notes/n", "atuh": null}"#, "case 1: 'atuh' is no member of a case."),
      (
        #"{"name": "x", "method": "read", "path": "notes/n"}"#,
        "x: 'read' is no method: get, list, create, update or delete."
      ),
      (#"{"method": "get", "path": "notes"}"#, "case 1: 'path' must name a document."),
      (#"{"method": "create", "path": "notes/n"}"#, "case 1: 'data' must have the fields after the create."),
      (
        #"{"method": "get", "path": "notes/n", "auth": "u"}"#,
        "case 1: 'auth' must be null, or an object with 'uid' and optionally 'token'."
      ),
      (
        #"{"method": "get", "path": "notes/n", "expect": "yes"}"#,
        "case 1: 'expect' must be \"allow\" or \"deny\"."
      ),
      (
        #"{"method": "list", "path": "notes", "query": {"where": [["a", "=", 1]]}}"#,
        "case 1: 'where' must have conditions such as [\"owner\", \"==\", \"alice\"]."
      ),
      (
        #"{"method": "get", "path": "notes/n", "time": "today"}"#,
        "case 1: 'time' must be a time such as \"2030-01-31T12:00:00Z\"."
      ),
    ])
  func malformed(request: String, message: String) throws {
    let error = #expect(throws: RuleCaseError.self) { try verdict(Self.firestore, request) }
    #expect(error?.description == message)
  }

  @Test("A JUnit file has each case and each failure, with escaped texts")
  func junit() throws {
    let file = try RuleCaseFile(
      Array(
        """
        {"documents": {"notes/n": {"owner": "u"}}, "cases": [
          {"name": "a <b>", "method": "get", "path": "notes/n", "auth": {"uid": "u"}, "expect": "allow"},
          {"name": "c", "method": "get", "path": "notes/n", "auth": {"uid": "\\u0001"}, "expect": "allow"}
        ]}
        """.utf8))
    let rules = try TestedRules(compiling: Array(Self.firestore.utf8))
    let report = try RuleTestReport("cases.json", file, rules: rules)
    #expect(report.failures.map(\.name) == ["c"])
    let text = report.junit
    #expect(text.contains(#"<testsuite name="cases.json" tests="2" failures="1">"#))
    #expect(text.contains(#"<testcase classname="cases.json" name="a &lt;b&gt;"/>"#))
    #expect(text.contains(#"<failure message="expected allow, but the rules deny: "#))
    #expect(text.contains("\u{FFFD}") && !text.contains("\u{1}"))
  }

  @Test("The first token of a file, after comments and white space, decides its product")
  func product() {
    #expect(TestedRules.isRealtime(Array("/* x */ // {\n\t{".utf8)))
    #expect(TestedRules.isRealtime([0xEF, 0xBB, 0xBF, 0x7B]))
    #expect(!TestedRules.isRealtime(Array("// {\nservice x {}".utf8)))
    #expect(!TestedRules.isRealtime(Array("/* {".utf8)))
    #expect(!TestedRules.isRealtime([UInt8]()))
  }
}
