// One open database: its rows, its locks, its transactions and its listeners.

import FirestoreModel
import Locking
import OrderedStore

/// Everything that belongs to one database.
final class FirestoreDatabase: Sendable {
  let name: DatabaseName
  let rows: any OrderedDatabase
  let policy: any AccessPolicy
  let options: FirestoreEngine.Options
  let locks: LockTable
  let transactions: TransactionTable
  let hub: WatchHub
  let indexes: IndexBuilder
  /// The indexes that the operator has been told of, by their texts' hashes.
  let advised = Guarded<Set<Int>>([])
  /// The bytes of results that queries of all databases hold to sort them.
  let sorting: SortMemory
  /// The reservation that reads wait for, if one is under way.
  let reserving = Guarded<Reservation?>(nil)
  private let nextWriter = Guarded<UInt64>(1)

  init(
    name: DatabaseName, rows: any OrderedDatabase, policy: any AccessPolicy,
    options: FirestoreEngine.Options, sorting: SortMemory
  ) {
    self.name = name
    self.rows = rows
    self.policy = policy
    self.options = options
    self.sorting = sorting
    // The two know of each other: a lost lock dooms its transaction, an ended transaction gives back its locks.
    let table = Guarded<TransactionTable?>(nil)
    let locks = LockTable(clock: options.clock) { owner in
      table.withLock { $0 }?.idleSince(owner)
    } aborted: { owner in
      table.withLock { $0 }?.doom(owner)
    }
    let transactions = TransactionTable(
      name: name, epoch: UInt64.random(in: .min ... .max), clock: options.clock, limits: options.limits
    ) { [weak locks] owner in locks?.release(owner) }
    table.withLock { $0 = transactions }
    self.locks = locks
    self.transactions = transactions
    hub = WatchHub(rows, options)
    indexes = IndexBuilder(name, rows, options)
  }

  /// A number for a commit's footprint, unique in this process.
  func makeWriter() -> UInt64 {
    nextWriter.withLock { next in
      defer { next += 1 }
      return next
    }
  }

  /// The database's name in the store's catalogue.
  static func catalogueName(_ name: DatabaseName) -> String { catalogue + name.description }

  /// What the catalogue names of Firestore databases begin with.
  static let catalogue = "firestore/"
}
