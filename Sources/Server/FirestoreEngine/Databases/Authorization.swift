// Authorizes operations by the database's access policy, on the state that an operation reads.
//
// The policy decides twice about a read that locks or reads a past version: first on the newest state, before the read waits
// for locks or reads stored data; then on the state that it reads, under its locks. So a denied read takes no lock, and a
// read of a past version also needs the caller's current permission.
//
// The policy may be replaced while an operation waits. So each decision reads the policy that is in force at that
// moment, and uses it to its end.
//
// Invariant: no stored data reaches a caller, and no lock is taken for one, before the policy has allowed the operation.

import Access
import FirestoreModel
import OrderedStore

/// An operation with its caller, to authorize it at several points of its execution.
struct AuthorizedOperation: Sendable {
  /// The caller; `Principal.nobody` if its credentials are for another project.
  let caller: Principal
  let operation: FirestoreOperation
}

extension FirestoreDatabase {
  /// An operation with its caller. A caller with credentials for another project is treated as `Principal.nobody`.
  func operation(_ operation: FirestoreOperation, of caller: Principal) -> AuthorizedOperation {
    AuthorizedOperation(caller: caller.acting(in: name.project), operation: operation)
  }

  /// Whether the policy in force allows a caller every operation that is not administrative. Then an operation can
  /// skip the work that prepares a decision.
  func allowsEverything(_ caller: Principal) -> Bool {
    policies.current.allowsEverything(caller.acting(in: name.project))
  }

  /// Whether the policy in force has nothing to decide about an operation.
  func isAllowed(_ authorised: AuthorizedOperation) -> Bool {
    !authorised.operation.isAdministrative && policies.current.allowsEverything(authorised.caller)
  }

  /// Lets the policy decide about an operation on the state of `view`.
  /// - Returns: the decision, with the documents and the time that it depends on.
  /// - Throws: the policy's denial.
  @discardableResult
  func authorise(
    _ authorised: AuthorizedOperation, in view: any ReadView
  ) throws -> FirestoreDecision {
    if isAllowed(authorised) { return .allowed }
    return try decide(authorised) { readView(view) }
  }

  /// The documents that a policy may read during a read.
  func readView(_ view: any ReadView, _ part: DecisionPart = .all) -> ReadDocumentView {
    ReadDocumentView(view, time: options.clock.wallTime(), part)
  }

  /// The policy's outcome for a part of an operation.
  enum PartialDecision: Sendable {
    case finished(FirestoreDecision)
    /// The next part. Nothing is allowed yet.
    case unfinished(DecisionPart)
  }

  /// Lets the policy decide about a part of an operation on the state of `view`.
  /// - Parameter policy: the policy that was in force at the first part.
  /// - Throws: the policy's denial.
  func authorise(
    _ authorised: AuthorizedOperation, _ part: DecisionPart, by policy: PinnedPolicy<FirestoreAccess>,
    in view: any ReadView
  ) throws -> PartialDecision {
    do {
      return .finished(try decide(authorised, by: policy) { readView(view, part) })
    } catch let unfinished as UnfinishedDecision<FirestoreAccess> {
      return .unfinished(.rest(unfinished.continuation))
    }
  }

  /// Lets the policy decide about an operation at one version, in several reads if that takes long.
  /// - Parameter version: the version; nil for the newest.
  /// - Throws: the policy's denial.
  @discardableResult
  func authorise(_ authorised: AuthorizedOperation, at version: Version?) async throws -> FirestoreDecision {
    if isAllowed(authorised) { return .allowed }
    var version = version
    var part = DecisionPart.start
    var policy: PinnedPolicy<FirestoreAccess>?
    while true {
      let (current, first) = (part, policy)
      let (decision, read, pinned) = try await rows.read(at: version) { view in
        let pinned = first ?? self.policies.current
        return (try self.authorise(authorised, current, by: pinned, in: view), view.version, pinned)
      }
      switch decision {
      case .finished(let decision): return decision
      case .unfinished(let rest): (part, version, policy) = (rest, read, pinned)
      }
      try Task.checkCancellation()
    }
  }

  /// Lets the policy decide about several operations at one version in one read.
  /// - Returns: a decision or denial for each operation; nil for an operation whose decision needs further reads.
  func authorise(
    _ operations: [AuthorizedOperation], at version: Version
  ) async throws -> [Result<FirestoreDecision, FirestoreError>?] {
    try await rows.read(at: version) { view in
      // Operations of one caller usually look up the same document, which the view caches.
      let documents = self.readView(view, .start)
      return try operations.map { operation -> Result<FirestoreDecision, FirestoreError>? in
        do { return .success(try self.decide(operation) { documents }) } catch let error as FirestoreError {
          return .failure(error)
        } catch is UnfinishedDecision<FirestoreAccess> { return nil }
      }
    }
  }

  /// Lets the policy decide about an operation on the state of a view that is made on demand.
  /// - Parameters:
  ///   - policy: the policy that decides; nil for the policy in force.
  ///   - isRepeated: whether the policy's observer has received a decision about the same operation already.
  /// - Throws: the policy's denial.
  @discardableResult
  func decide(
    _ authorised: AuthorizedOperation, by policy: PinnedPolicy<FirestoreAccess>? = nil,
    isRepeated: Bool = false, view: () -> any DocumentView
  ) throws -> FirestoreDecision {
    let decision = try (policy ?? policies.current).decide(
      authorised.caller, authorised.operation, isRepeated: isRepeated
    ) { view() }
    if let denial = decision.denial {
      options.reportDenial?(name, denial)
      throw denial.error
    }
    return decision
  }

  /// Lets the policy decide about an operation that no stored data affects.
  /// - Throws: the policy's denial.
  func authoriseWithoutData(_ caller: Principal, _ operation: FirestoreOperation) async throws {
    let authorised = self.operation(operation, of: caller)
    if isAllowed(authorised) { return }
    if operation.isAdministrative {
      // The decision depends only on the caller.
      try decide(authorised) { preconditionFailure("invariant: no policy decides administrative operations") }
    } else {
      try await rows.read(at: nil) { view in _ = try self.authorise(authorised, in: view) }
    }
  }

  /// Whether an error is a denial. No other error of the engine has these codes.
  static func isDenial(_ error: any Error) -> Bool {
    guard let error = error as? FirestoreError else { return false }
    return error.code == .permissionDenied || error.code == .unauthenticated
  }

  /// Lets the policy decide about operations on the newest state, each in a separate read.
  /// - Throws: the policy's denial.
  func authoriseNow(_ operations: [AuthorizedOperation]) async throws {
    for operation in operations { try await authorise(operation, at: nil) }
  }
}

/// The documents that a policy may read during a read. The first of them is read from the store once, since it is usually
/// the result of the read.
final class ReadDocumentView: DocumentView {
  private let view: any ReadView
  let time: Timestamp
  let part: DecisionPart
  private var first: (name: DocumentName, stored: StoredDocument?)?

  init(_ view: any ReadView, time: Int64, _ part: DecisionPart) {
    self.view = view
    self.part = part
    self.time = Timestamp(microseconds: time)
  }

  /// The stored document; nil if it does not exist.
  /// - Throws: the store's errors.
  func stored(_ name: DocumentName) throws -> StoredDocument? {
    if let first, first.name == name { return first.stored }
    let stored = try view.document(name)
    if first == nil { first = (name, stored) }
    return stored
  }

  func document(_ name: DocumentName) throws -> Document? { try stored(name)?.document() }
  func documentAfter(_ name: DocumentName) throws -> Document? { try document(name) }
  func exists(_ name: DocumentName) throws -> Bool {
    try view.get(FirestoreKeyLayout.document(name.path)) != nil
  }
}

extension StoredDocument {
  /// The document with its decoded contents.
  /// - Throws: DATA_LOSS if the stored bytes are not a document.
  func document() throws(FirestoreError) -> Document {
    Document(name: name, fields: try fields(), createTime: createTime, updateTime: updateTime)
  }
}
