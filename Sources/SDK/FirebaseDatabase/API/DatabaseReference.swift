// A reference to a location in a database: navigation and names. Extensions write, run transactions and register
// onDisconnect operations.

import FirebaseCore
import Foundation
import Locking
import RealtimeModel

/// A location in a database.
///
/// Immutable, and safe to hand between threads. A path that cannot exist stops the program.
open class DatabaseReference: DatabaseQuery, @unchecked Sendable {
  // Safe to share: it adds no state to its superclass.

  private static let pushIDs = Guarded(PushIDGenerator())

  init(repository: Repository?, path: Path) {
    super.init(repository: repository, path: path, parameters: QueryParameters())
  }

  /// Makes a reference of no database; using it stops the program.
  public convenience init() {
    self.init(repository: nil, path: .root)
  }

  /// The location of a child or, with slashes, of a deeper descendant.
  @discardableResult
  open func child(_ pathString: String) -> DatabaseReference {
    let path = PathRules.reference(pathString, below: path, method: "child:")
    return DatabaseReference(repository: optionalRepository, path: path)
  }

  /// A new child whose key is unique and sorts after the keys made before, by the server's clock.
  @discardableResult
  open func childByAutoId() -> DatabaseReference {
    PathRules.checkWritable(path, method: "childByAutoId")
    let time = optionalRepository?.publishedServerTime ?? Repository.milliseconds
    let key = DatabaseReference.pushIDs.withLock { $0.next(at: time) }
    return DatabaseReference(repository: optionalRepository, path: path.child(ChildKey(key)))
  }

  /// The location above; nil for the root.
  open var parent: DatabaseReference? {
    path.parent.map { DatabaseReference(repository: optionalRepository, path: $0) }
  }

  /// The root of the database.
  open var root: DatabaseReference {
    DatabaseReference(repository: optionalRepository, path: .root)
  }

  /// The last key of the path; nil for the root.
  open var key: String? { path.last?.text }

  /// The URL of the location.
  open var url: String {
    let keys = path.keys.map { "/" + $0.text.percentEncodedForQuery }
    return (optionalRepository?.endpoint.url ?? "") + keys.joined()
  }

  /// The database that the location is in.
  open var database: Database { Database.owner(of: repository) }

  override func describe() -> String { url }

  /// The URL of the location.
  @discardableResult
  open func description() -> String { url }

  /// Closes the default database's connection until `goOnline()`. Writes are sent after that.
  open class func goOffline() {
    Database.database().goOffline()
  }

  /// Opens the default database's connection again.
  open class func goOnline() {
    Database.database().goOnline()
  }
}
