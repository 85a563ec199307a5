// The values that rule expressions of the Realtime Database compute with. Numbers are doubles, as in JavaScript; text is
// compared by UTF-16 code units.

package import Access
package import RealtimeModel

/// A value of an expression.
package enum RealtimeValue: Sendable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  /// `auth` of a user: the members `uid`, `provider` and `token`.
  case user(User)
  /// A claim with members.
  case claims(Node)
  /// A stored object, the result of `val()`. Only equality accepts it; it is never loaded.
  case object
  /// A location before or after the operation.
  case snapshot(RealtimeSnapshot)

  /// The value of a leaf; null for nil. A placeholder for a server value, which no stored leaf has, is an object
  /// without members.
  init(_ leaf: LeafValue?) {
    switch leaf {
    case nil: self = .null
    case .bool(let value)?: self = .bool(value)
    case .int(let value)?: self = .number(Double(value))
    case .double(let value)?: self = .number(value)
    case .string(let value)?: self = .string(value)
    case .deferred?: self = .object
    }
  }

  /// A claim.
  init(claim: Node) {
    switch claim.content {
    case .empty: self = .null
    case .leaf(let value): self = RealtimeValue(value)
    case .children: self = .claims(claim)
    }
  }

  /// `auth` of a caller.
  init(auth principal: Principal) {
    guard let user = principal.user else {
      self = .null
      return
    }
    // The claims of an override replace `auth` completely. Even without claims, `auth` is then an object and not null.
    self = user.isOverride ? .claims(user.claims.node) : .user(user)
  }

  /// The name of the value's type, for messages.
  var typeName: String {
    switch self {
    case .null: "null"
    case .bool: "boolean"
    case .number: "number"
    case .string: "string"
    case .user, .claims, .object: "object"
    case .snapshot: "snapshot"
    }
  }
}

/// A location before or after the operation, as rules see it.
package struct RealtimeSnapshot: Sendable, Hashable {
  /// The location. Nil for a path that no location can have, where no value exists.
  let path: Path?
  let state: TreeState
}

extension RealtimeValue {
  /// A member of the value; null if the value is null or has no such member.
  func property(_ name: String) -> RealtimeValue {
    switch self {
    case .string(let text): name == "length" ? .number(Double(text.utf16.count)) : .null
    case .claims(let node): RealtimeValue(claim: node.child(ChildKey(name)))
    case .user(let user):
      switch name {
      case "uid": .string(user.id)
      case "token": RealtimeValue(claim: user.claims.node)
      case "provider": user.provider.map { .string($0) } ?? .null
      default: .null
      }
    case .null, .bool, .number, .object, .snapshot: .null
    }
  }

  /// A member whose name is computed; null for a name that is neither a string nor a number.
  func element(_ name: RealtimeValue) -> RealtimeValue {
    switch name {
    case .string(let text): property(text)
    case .number(let number): property(RealtimeText.text(of: number))
    case .null, .bool, .user, .claims, .object, .snapshot: .null
    }
  }

  /// Whether two values are equal by type and value. A stored object equals no value.
  ///
  /// - Throws: ``RealtimeFailure`` for a snapshot.
  func equals(_ other: RealtimeValue) throws(RealtimeFailure) -> Bool {
    switch (self, other) {
    case (.snapshot, _), (_, .snapshot): throw .type("a snapshot cannot be compared")
    case (.null, .null): true
    case (.bool(let x), .bool(let y)): x == y
    case (.number(let x), .number(let y)): x == y
    case (.string(let x), .string(let y)): TextOrder.equal(x, y)
    case (.user(let x), .user(let y)): x == y
    case (.claims(let x), .claims(let y)): x == y
    default: false
    }
  }
}

extension User {
  /// `auth.provider`: the claim `firebase.sign_in_provider`, without `.com` for the providers that had no domain in
  /// older versions of Firebase.
  fileprivate var provider: String? {
    let claim = claims.node.child("firebase").child("sign_in_provider")
    guard case .string(let name)? = claim.leafValue else { return nil }
    switch name {
    case "google.com", "facebook.com", "twitter.com", "github.com": return String(name.dropLast(4))
    default: return name
    }
  }
}
