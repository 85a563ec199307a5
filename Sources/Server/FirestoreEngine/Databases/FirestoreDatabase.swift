// One open database: its rows, locks, transactions and listeners.

import Access
import FirestoreModel
import Locking
import OrderedStore

/// One open database.
final class FirestoreDatabase: Sendable {
  let name: DatabaseName
  let rows: any OrderedDatabase
  /// The access policy, which may be replaced at any time.
  let policies: PolicySlot<FirestoreAccess>
  /// Signs page tokens and transaction tokens.
  let signer: TokenSigner
  let options: FirestoreEngine.Options
  let locks: LockTable
  let transactions: TransactionTable
  let hub: WatchHub
  /// The open streams of callers with credentials, of all databases.
  let callerStreams: CallerStreams
  let indexes: IndexMaintainer
  /// Hashes of the index suggestions that were reported to the operator.
  let reportedAdvice = Guarded<Set<Int>>([])
  /// The memory budget for sorting, shared by all databases.
  let sortMemory: SortMemoryBudget
  /// The version reservation in progress that reads wait for; nil for none.
  let versionReservation = Guarded<VersionReservation?>(nil)
  /// The number of the change of rules that is in force; 0 if this process has not changed the rules.
  let rulesChangeNumber = Guarded<UInt64>(0)
  let firstRows: FirstRows
  /// The commits whose decision is unfinished.
  let undecidedCommits = DecisionQueue<Attempt>()
  private let nextWriter = Guarded<UInt64>(1)

  /// - Parameters:
  ///   - exists: whether the store contains the database.
  ///   - rules: the changes of rules in this process.
  init(
    name: DatabaseName, rows: any OrderedDatabase, exists: Bool, policies: PolicySlot<FirestoreAccess>,
    signer: TokenSigner, rules: Guarded<RulesDirectory>, options: FirestoreEngine.Options,
    callerStreams: CallerStreams, sortMemory: SortMemoryBudget
  ) {
    self.name = name
    self.rows = rows
    self.policies = policies
    self.signer = signer
    self.options = options
    self.callerStreams = callerStreams
    self.sortMemory = sortMemory
    // The lock table and the transaction table call each other: the lock table marks transactions that lose their
    // locks, and the transaction table releases the locks of ended transactions.
    let table = Guarded<TransactionTable?>(nil)
    let locks = LockTable(clock: options.clock) { owner in
      table.withLock { $0 }?.idleSince(owner)
    } onLocksLost: { owner in
      table.withLock { $0 }?.markLocksLost(owner)
    }
    let transactions = TransactionTable(
      name: name, epoch: UInt64.random(in: .min ... .max), signer: signer, clock: options.clock,
      limits: options.limits
    ) { [weak locks] owner in locks?.release(owner) }
    table.withLock { $0 = transactions }
    self.locks = locks
    self.transactions = transactions
    hub = WatchHub(rows, policies, options)
    indexes = IndexMaintainer(name, rows, options)
    firstRows = FirstRows(of: name, signer, indexes, rules, options.clock, areWritten: exists)
  }

  /// Whether the database exists, or a commit has tried to create it.
  var isWritten: Bool { firstRows.areWritten }

  /// A number, unique in this process, by which the lock table identifies a commit and the keys that it changes.
  func makeWriter() -> UInt64 {
    nextWriter.withLock { next in
      defer { next += 1 }
      return next
    }
  }

  /// The database's name in the store's catalogue.
  static func catalogueName(_ name: DatabaseName) -> String { cataloguePrefix + name.description }

  /// The prefix of Firestore databases in the store's catalogue.
  static let cataloguePrefix = "firestore/"
}
