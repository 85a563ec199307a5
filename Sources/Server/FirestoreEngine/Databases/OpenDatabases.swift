// The databases that an engine holds open. The engine releases a database without a commit when no request or stream uses
// it, so that requests for unknown names take neither memory nor disk space.
//
// Invariant: an open database is one object. Only a database without other references is released, under the engine's
// lock, and references are handed out under that lock only.

import FirestoreModel

/// The open databases of an engine.
struct OpenDatabases {
  /// The minimum of `threshold`: the number of open databases without a commit from which on `add` removes unused ones.
  private static let minimumThreshold = 64

  private var databases: [DatabaseName: FirestoreDatabase] = [:]
  /// The names of databases that had no commit when they were last examined.
  private var unwritten: [DatabaseName] = []
  private var threshold = OpenDatabases.minimumThreshold

  subscript(name: DatabaseName) -> FirestoreDatabase? { databases[name] }

  /// All open databases.
  var all: some Collection<FirestoreDatabase> { databases.values }

  /// The names of all open databases.
  var names: some Collection<DatabaseName> { databases.keys }

  /// Adds a database.
  /// - Returns: databases that no request or stream uses. The caller releases them outside the engine's lock.
  mutating func add(_ database: FirestoreDatabase) -> [FirestoreDatabase] {
    databases[database.name] = database
    if database.isWritten { return [] }
    unwritten.append(database.name)
    return unwritten.count < threshold ? [] : removeUnused()
  }

  /// Removes the unused databases without a commit. The threshold for the next search is twice the number of used ones, so
  /// that the cost per added database is constant.
  private mutating func removeUnused() -> [FirestoreDatabase] {
    var released: [FirestoreDatabase] = []
    let names = unwritten
    unwritten = []
    for name in names {
      guard var database = databases.removeValue(forKey: name) else { continue }
      if database.isWritten {
        databases[name] = database
      } else if isKnownUniquelyReferenced(&database), database.transactions.openCount == 0 {
        released.append(database)
      } else {
        databases[name] = database
        unwritten.append(name)
      }
    }
    threshold = max(OpenDatabases.minimumThreshold, 2 * unwritten.count)
    return released
  }
}

/// A database that is open or being opened.
enum DatabaseHandle {
  case open(FirestoreDatabase)
  case opening(Task<FirestoreDatabase, any Error>)

  /// The database; nil if it cannot be opened.
  var value: FirestoreDatabase? {
    get async {
      switch self {
      case .open(let database): database
      case .opening(let task): try? await task.value
      }
    }
  }
}

extension FirestoreEngine.State {
  /// The databases that are open or being opened.
  func databases(where isIncluded: (DatabaseName) -> Bool = { _ in true }) -> [DatabaseHandle] {
    opened.all.filter { isIncluded($0.name) }.map { .open($0) }
      + opening.filter { isIncluded($0.key) }.map { .opening($0.value) }
  }
}
