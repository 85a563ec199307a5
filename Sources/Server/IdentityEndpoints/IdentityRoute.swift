// Finds the operation that a path names. A path begins with the host name of the hosted product's API, as SDKs send it
// to an emulator.

import Ports

/// The operation of a request, and the resource that its path names.
struct IdentityRoute: Sendable {
  /// The operations of the path by method.
  var operations: [String: IdentityOperation]
  /// The project that the path names; nil for none.
  var project: String?
  /// The tenant that the path names; nil for none.
  var tenant: String?
  /// The last element of the resource's path; nil for none.
  var resource: String?

  /// Finds the operations of a path; nil if no API has the path.
  init?(_ segments: [String]) {
    var rest = segments[...]
    let table: IdentityOperation.Table
    switch (rest.popFirst(), rest.popFirst()) {
    case ("identitytoolkit.googleapis.com", "v1"): table = IdentityOperation.version1
    case ("identitytoolkit.googleapis.com", "v2"): table = IdentityOperation.version2
    case ("securetoken.googleapis.com", "v1"): table = IdentityOperation.secureToken
    case ("www.googleapis.com", "identitytoolkit"):
      guard rest.popFirst() == "v3", rest.popFirst() == "relyingparty" else { return nil }
      table = IdentityOperation.version3
    default: return nil
    }
    var pattern = Array(rest)
    if pattern.first == "projects", pattern.count > 1 {
      project = pattern.remove(at: 1)
      if pattern.count == 1, let verb = Self.removeVerb(from: &project) {
        pattern[0] += ":" + verb
      } else if pattern.count > 1, pattern[1] == "tenants", pattern.count > 2 {
        tenant = pattern.remove(at: 2)
        if pattern.count == 2 {
          if let verb = Self.removeVerb(from: &tenant) {
            pattern = ["projects:" + verb]
          } else {
            // The path names the tenant as its resource.
            (resource, tenant) = (tenant, nil)
            pattern.append("*")
          }
        } else {
          pattern.remove(at: 1)
        }
      }
      if pattern.count == 3, pattern[2] != "*" {
        resource = pattern[2]
        pattern[2] = "*"
      }
    }
    guard let operations = table[pattern.joined(separator: "/")] else { return nil }
    self.operations = operations
  }

  /// Removes a custom method such as `:createSessionCookie` from the end of a segment.
  private static func removeVerb(from segment: inout String?) -> String? {
    guard let text = segment, let colon = text.lastIndex(of: ":") else { return nil }
    let verb = String(text[text.index(after: colon)...])
    // The IDs of some projects contain a colon, but methods have letters only.
    guard verb.allSatisfy({ $0.isASCII && $0.isLetter }), verb.first?.isLowercase == true else { return nil }
    segment = String(text[..<colon])
    return verb
  }
}
