// Tests of the linter: it reports each mistake at its position, and reports nothing about sound rules.

import SecurityRules
import Testing

@Suite("Linting of rules") struct RuleLintTests {
  private func findings(_ source: String) throws -> [String] {
    try TestedRules(compiling: Array(source.utf8)).lint().map(\.report)
  }

  /// The findings about a block `notes/{id}` with these lines, which begin in line 4.
  private func firestore(_ lines: String, functions: String = "") throws -> [String] {
    try findings(
      """
      rules_version = '2';
      service cloud.firestore { match /databases/{database}/documents { \(functions)
      match /notes/{id} {
      \(lines)
      } } }
      """)
  }

  @Test(
    "Open access is found, also through functions and in a part of a condition",
    arguments: [
      ("allow read;", "Everyone may read here"),
      ("allow write: if true;", "Everyone may write here"),
      ("allow read, write: if false || true;", "Everyone may read and write here"),
      ("allow get: if request.auth == null;", "Everyone may read here"),
      ("allow get: if open();", "Everyone may read here"),
      (
        "allow write: if request.time < timestamp.date(2030, 1, 1);",
        "Everyone may write here until a time passes"
      ),
      ("allow get: if request.auth != null;", "Any signed-in user may read here"),
      ("allow get: if null != request.auth.uid && true;", "Any signed-in user may read here"),
      ("allow get: if signedIn();", "Any signed-in user may read here"),
    ])
  func openAccess(line: String, finding: String) throws {
    let found = try firestore(
      line,
      functions: line.contains("open()")
        ? "function open() { return true; }"
        : line.contains("signedIn()") ? "function signedIn() { return request.auth != null; }" : "")
    #expect(found.count == 1 && found[0].hasPrefix("4:1: \(finding)"), "\(found)")
  }

  @Test(
    "An update that demands less than a create is found",
    arguments: [
      (
        "allow create: if request.auth.token.a == 1 && request.resource.data.b == 1;\nallow update: if request.auth.token.a == 1;",
        "5:1: 'create' checks the new data (request.resource), but 'update' does not."
      ),
      (
        "allow create: if request.auth.token.a == 1;\nallow update: if request.auth != null;",
        "5:1: 'update' demands less than 'create'."
      ),
    ])
  func weakUpdate(lines: String, finding: String) throws {
    #expect(try firestore(lines).contains { $0.hasPrefix(finding) })
  }

  @Test(
    "Queries that no rule can allow are found",
    arguments: [
      ("allow read: if request.auth.uid == id;", "unless it names the document"),
      ("allow list: if mine(id);", "unless it names the document"),
      ("allow list: if resource.id == 'a' || resource['id'] == 'b';", "unless it names the document"),
      ("allow list: if request.resource.data.a == 1;", "which reads do not have"),
    ])
  func impossibleQueries(line: String, finding: String) throws {
    let functions = line.contains("mine") ? "function mine(x) { return request.auth.uid == x; }" : ""
    let found = try firestore(line, functions: functions)
    #expect(found.count == 1 && found[0].hasPrefix("4:1: No query") && found[0].contains(finding), "\(found)")
  }

  @Test(
    "Unbounded strings, functions that hide others, unused functions, and blocks that match no document are found"
  )
  func otherFindings() throws {
    #expect(
      try firestore("allow create: if request.resource.data.a is string;") == [
        "4:18: The size of the string 'request.resource.data.a' has no bound: a client may write up to 1 MiB. Compare its size()."
      ])
    let hidden = try firestore(
      "function f() { return request.auth.token.a == 1; }\nallow get: if f();",
      functions: "function f() { return false; }")
    #expect(hidden.contains { $0.contains("The function 'f' hides an outer function of the same name.") })
    #expect(hidden.contains { $0.hasSuffix("Unused function: f.") })
    let block = try findings(
      "rules_version = '2';\nservice cloud.firestore { match /notes/{id} { allow get: if request.auth.uid == 'a'; } }"
    )
    #expect(block.contains { $0.contains("No document has a path that this block covers") })
  }

  @Test("Sound rules of Cloud Firestore have no findings")
  func soundFirestore() throws {
    let found = try firestore(
      """
      allow get: if request.auth.uid == id || resource.data.owner == request.auth.uid;
      allow list: if resource.data.owner == request.auth.uid;
      allow create, update: if valid(request.resource.data) && request.resource.data.owner == request.auth.uid;
      allow delete: if false;
      """,
      functions: "function valid(data) { return data.title is string && data.title.size() < 100; }")
    #expect(found == [])
  }

  @Test("Open, useless and unchecked rules of the Realtime Database are found at their positions")
  func realtime() throws {
    let found = try findings(
      """
      {"rules": {
        "a": {".read": true, "b": {".read": "auth.uid == 'x'"}},
        "c": {".write": "auth != null"},
        "d": {".write": "auth.uid == 'x'", ".validate": "newData.isString()"},
        "e": {".read": "query.orderByChild == 'x' && auth.uid == 'x'"},
        "f": {".read": "now < 1900000000000"}
      }}
      """)
    #expect(found.count == 7, "\(found.joined(separator: "\n"))")
    for (line, text) in [
      (2, "Everyone may read /a,"), (2, "This .read restricts nothing: that of /a in line 2"),
      (3, "Any signed-in user may write /c"), (3, "No rule checks the data that is written to /c"),
      (4, "The size of the string 'newData' has no bound"),
      (5, "No query can be allowed here: the rule demands the order by 'x'"),
      (6, "Everyone may read /f until a time passes"),
    ] { #expect(found.contains { $0.hasPrefix("\(line):") && $0.contains(text) }, "\(text)") }
  }

  @Test("Sound rules of the Realtime Database have no findings")
  func soundRealtime() throws {
    let found = try findings(
      """
      {"rules": {"users": {"$uid": {
        ".read": "auth.uid == $uid", ".write": "auth.uid == $uid",
        ".validate": "newData.isString() && newData.val().length < 100"
      }}, "list": {".indexOn": "x", ".read": "query.orderByChild == 'x' && auth.uid == 'a'"}}}
      """)
    #expect(found == [])
  }
}
