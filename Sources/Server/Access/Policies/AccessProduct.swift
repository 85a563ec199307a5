// An access product is Cloud Firestore or the Realtime Database, as access policies see it: its operations, its data
// and its errors. `FirestoreAccess` and `RealtimeAccess` define the two products.

/// A product whose operations access policies decide.
package protocol AccessProduct: Sendable {
  /// An operation about which a policy decides.
  associatedtype Operation: AccessOperation
  /// The state that a policy may read for a decision.
  associatedtype View
  /// An item that a decision may depend on: a document or a path.
  associatedtype Resource: Hashable & Sendable
  /// A name of a database, to which a policy belongs.
  associatedtype Database: Hashable & Sendable
  /// The product's error.
  associatedtype Failure: Error & Sendable

  /// The error of a denied operation.
  static var permissionDenied: Failure { get }
  /// The error of an administrative operation that a user requests.
  static func administrativeDenial(_ text: String) -> Failure
  /// The error of an operation that needs credentials and has none.
  static var credentialsRequired: Failure { get }
  /// A rules file that allows every operation.
  static var openRules: String { get }
  /// A rules file that denies every operation of users.
  static var lockedRules: String { get }
}

/// An operation about which a policy decides.
package protocol AccessOperation: Sendable {
  /// Whether the operation changes data.
  var changesData: Bool { get }
  /// Whether only service accounts may perform the operation, regardless of the policy.
  var isAdministrative: Bool { get }
  /// The text that a user receives for an administrative operation.
  var administrativeDenial: String { get }
}
