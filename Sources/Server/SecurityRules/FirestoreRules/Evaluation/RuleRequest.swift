// The request that rules decide, in the form that the variables `request` and `resource` have.

package import FirestoreModel

/// The request that a rule decides: the values of `request` and `resource`.
package struct RuleRequest: Sendable {
  /// The value of `resource`.
  enum Resource: Sendable {
    /// A document, the known fields of a query's documents, or null for a document that does not exist.
    case value(RuleValue)
    /// A document that a query names and that does not exist: an expression that uses `resource` fails.
    case missing
  }

  /// The method that the rules must allow.
  var method: RuleMethod
  /// The database's id.
  var database: String
  /// The document, or the collection of a query.
  var path: ResourcePath
  /// Whether `request.path` is known; a query over a collection group has none.
  var isPathKnown = true
  /// The caller: null, or a map with `uid` and `token`.
  var auth: RuleValue
  /// The time of the request; the time that server timestamps receive.
  var time: Timestamp
  /// The stored document.
  var resource: Resource
  /// The document after the write; null for a delete, absent for reads.
  var newResource: RuleValue?
  /// The limit, offset and order of a query.
  var query: RuleValue?
  /// The document's state before and after the request. `get()`, `exists()`, `getAfter()` and `existsAfter()` read it
  /// without counting a lookup. Nil for a query.
  var requestedDocument: (path: ResourcePath, before: MapValue?, after: MapValue?)?

  /// The value of a member, or nil if the request has none.
  func member(_ member: RuleProgram.RequestMember) -> RuleValue? {
    switch member {
    case .auth: auth
    case .method: .text(method.rawValue)
    case .path: isPathKnown ? .path(RulePath(database: database, path: path)) : .unknownPath
    case .time: .timestamp(time)
    case .resource: newResource
    case .query: query
    }
  }

  /// `request` as a map.
  var map: RuleMap {
    .built(
      RuleProgram.RequestMember.allCases.sorted { $0.rawValue < $1.rawValue }.compactMap { name in
        member(name).map { RuleMap.Entry(RuleText(name.rawValue), $0) }
      })
  }
}

/// The caller of a request as rules see it.
package struct RuleCaller: Sendable {
  /// The value of `request.auth`.
  let value: RuleValue

  /// Nobody: `request.auth` is null.
  package static let nobody = RuleCaller(value: .null)

  private init(value: RuleValue) { self.value = value }

  /// A user.
  ///
  /// - Parameters:
  ///   - uid: The user's id, the claim `sub`.
  ///   - claims: All claims of the token.
  package init(uid: String, claims: MapValue) {
    value = .map(
      .built([
        RuleMap.Entry(RuleText("uid"), .text(uid)), RuleMap.Entry(RuleText("token"), .map(.stored(claims))),
      ]))
  }
}
