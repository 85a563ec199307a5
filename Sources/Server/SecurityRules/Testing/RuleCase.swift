// A rule case is one request with the data at the time of the request, as a JSON object. `hearth rules test` and
// `hearth rules diff` decide cases without a server.
//
// Members of both products:
//
//     name      a title
//     expect    "allow" or "deny"
//     auth      null for nobody, or {"uid": "alice", "token": {"admin": true}}
//     method    Cloud Firestore: get, list, create, update, delete; Realtime Database: read, write, update, delete
//     path      the document, collection or location
//     time      the time of the request, such as "2030-01-31T12:00:00Z"
//     query     the query of a list or a read
//
// Cloud Firestore: `documents` (fields by path), `resource` (the fields before the request; null if the document is
// missing; by default the fields in `documents`) and `data` (the fields after the write). Realtime Database: `tree`
// (the database before the request), `value` (the value of a write) and `updates` (the values of an update by path).
//
// A file of cases is an object with the array `cases`. Its members `rules`, `documents`, `tree`, `auth` and `time`
// apply to all cases. A case can override the last four.

package import JSON

/// The verdict of rules about a request.
package enum RuleVerdict: String, Sendable, Hashable {
  /// The rules allow the request.
  case allow
  /// The rules deny the request.
  case deny
}

/// A case that cannot be read.
package struct RuleCaseError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason, a sentence.
  package let description: String

  /// Makes an error.
  package init(_ description: String) { self.description = description }
}

/// A request, the data at its time, and the expected verdict.
package struct RuleCase: Sendable {
  /// The title of the case.
  package var name: String
  /// The expected verdict; nil if the case states none.
  package var expected: RuleVerdict?
  /// The members of the case, including the defaults of its file.
  package var members: JSONObject

  private static let knownMembers: Set<String> = [
    "name", "expect", "auth", "method", "path", "time", "query", "documents", "resource", "data", "tree",
    "value", "updates", "database",
  ]

  /// Reads a case.
  /// - Parameters:
  ///   - position: the position among the cases, from 0, for the title of a case without a name.
  ///   - defaults: members that apply unless the case overrides them.
  package init(
    _ object: JSONObject, at position: Int, defaults: JSONObject = JSONObject()
  ) throws(RuleCaseError) {
    let title = object["name"]?.string ?? "case \(position + 1)"
    name = title
    for member in object.members where !Self.knownMembers.contains(member.key) {
      throw RuleCaseError("\(title): '\(member.key)' is no member of a case.")
    }
    if let text = object["expect"] {
      guard let verdict = text.string.flatMap(RuleVerdict.init(rawValue:)) else {
        throw RuleCaseError("\(title): 'expect' must be \"allow\" or \"deny\".")
      }
      expected = verdict
    }
    members = object
    for member in defaults.members where members[member.key] == nil { members[member.key] = member.value }
  }

  /// A member that must be a string.
  func text(_ member: String) throws(RuleCaseError) -> String {
    guard let text = members[member]?.string else { throw fault("'\(member)' must be a string.") }
    return text
  }

  /// An error about this case.
  func fault(_ text: String) -> RuleCaseError { RuleCaseError("\(name): \(text)") }

  /// The caller's ID and claims, completed with the claims that every signed-in user has; nil for nobody.
  func claims() throws(RuleCaseError) -> (uid: String, claims: JSONObject)? {
    guard let auth = members["auth"], !auth.isNull else { return nil }
    guard let uid = auth["uid"]?.string else {
      throw fault("'auth' must be null, or an object with 'uid' and optionally 'token'.")
    }
    var claims = auth["token"]?.object ?? JSONObject()
    for member in auth.object?.members ?? [] where member.key != "uid" && member.key != "token" {
      throw fault("'\(member.key)' is no member of 'auth'; claims are members of 'token'.")
    }
    for name in ["sub", "user_id"] where claims[name] == nil { claims[name] = .string(uid) }
    if claims["firebase"] == nil {
      claims["firebase"] = .object([
        "sign_in_provider": .string("custom"), "identities": .object(JSONObject()),
      ])
    }
    return (uid, claims)
  }
}

/// A file of cases.
package struct RuleCaseFile: Sendable {
  /// The path of the rules file, relative to this file; nil if it names none.
  package var rules: String?
  /// The cases.
  package var cases: [RuleCase]

  private static let sharedMembers: Set<String> = ["documents", "tree", "auth", "time", "database"]

  /// Reads a file.
  /// - Throws: ``RuleCaseError`` for malformed JSON, and for the first case with an error.
  package init(_ bytes: [UInt8]) throws(RuleCaseError) {
    let json: JSONValue
    do { json = try JSONValue(json: bytes) } catch { throw RuleCaseError("The file is no JSON: \(error).") }
    guard let object = json.object, let list = object["cases"]?.array else {
      throw RuleCaseError("The file must be a JSON object with the array 'cases'.")
    }
    var shared = JSONObject()
    for member in object.members where member.key != "cases" && member.key != "rules" {
      guard Self.sharedMembers.contains(member.key) else {
        throw RuleCaseError("'\(member.key)' is no member of a file of cases.")
      }
      shared[member.key] = member.value
    }
    rules = object["rules"]?.string
    cases = []
    for (position, element) in list.enumerated() {
      guard let object = element.object else { throw RuleCaseError("Case \(position + 1) is no object.") }
      cases.append(try RuleCase(object, at: position, defaults: shared))
    }
  }
}
