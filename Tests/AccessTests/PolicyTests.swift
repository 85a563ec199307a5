// Tests of access policies: roles, administrative operations, standard policies, and the replacement of a policy. A policy
// slot holds the current policy of one database, and a policy directory holds the slots.

import FirestoreModel
import Locking
import RealtimeModel
import Testing

@testable import Access

/// A view of the documents that throws on every read, because the decisions of these tests must not depend on documents.
private struct UnreadableDocuments: DocumentView {
  struct Unexpected: Error {}
  func document(_ name: DocumentName) throws -> Document? { throw Unexpected() }
  func documentAfter(_ name: DocumentName) throws -> Document? { throw Unexpected() }
  func exists(_ name: DocumentName) throws -> Bool { throw Unexpected() }
  let time = Timestamp.epoch
}

@Suite("Policies") struct PolicyTests {
  private static let database = DatabaseName(project: "demo")

  private static func decide(
    _ policy: any AccessPolicy<FirestoreAccess>, _ principal: Principal, _ operation: FirestoreOperation
  ) throws -> FirestoreError? {
    try PolicySlot(policy).current.decide(principal, operation) { UnreadableDocuments() }.denial?.error
  }

  private static let administrative: [FirestoreOperation] = [
    .batchWrite, .listCollections(ParentName(rootOf: database)),
    .showMissing(ParentName(rootOf: database), collectionID: "c"),
    .partition(Query(parent: ParentName(rootOf: database), StructuredQuery())),
    .explain(Query(parent: ParentName(rootOf: database), StructuredQuery())),
  ]

  @Test("administrative operations are denied to users and allowed to service accounts under every policy")
  func administrativeOperations() throws {
    for operation in Self.administrative {
      for policy: any AccessPolicy<FirestoreAccess> in [
        OpenPolicy<FirestoreAccess>(), LockedPolicy<FirestoreAccess>(),
      ] {
        for principal in [Principal.nobody, .user("u")] {
          let error = try Self.decide(policy, principal, operation)
          #expect(error?.code == .permissionDenied)
          #expect(error?.message.hasSuffix("require admin authentication.") == true)
        }
        for role in ServiceRole.allCases {
          let error = try Self.decide(policy, Principal(.service(role)), operation)
          #expect((error == nil) == (role != .reader || !operation.changesData))
        }
      }
    }
  }

  @Test("a service account with the role reader may not write; no policy applies to the role writer")
  func roles() throws {
    let name = try #require(DocumentName(database: Self.database, path: "c/d"))
    let write = FirestoreOperation.commit([DocumentWrite(name, .update)])
    let locked = LockedPolicy<FirestoreAccess>()
    #expect(try Self.decide(locked, Principal(.service(.reader)), .get([name])) == nil)
    #expect(try Self.decide(locked, Principal(.service(.reader)), write)?.code == .permissionDenied)
    #expect(try Self.decide(locked, Principal(.service(.writer)), write) == nil)
    #expect(
      try Self.decide(locked, Principal(.service(.reader)), .commit([DocumentWrite(name, .verify)])) == nil)
    #expect(!PolicySlot(locked).current.allowsEverything(Principal(.service(.reader))))
  }

  @Test("the locked policy denies users, and fails calls without credentials as UNAUTHENTICATED")
  func locked() throws {
    let name = try #require(DocumentName(database: Self.database, path: "c/d"))
    let locked = LockedPolicy<FirestoreAccess>()
    #expect(try Self.decide(locked, .nobody, .get([name]))?.code == .unauthenticated)
    #expect(try Self.decide(locked, .user("u"), .get([name])) == FirestoreAccess.permissionDenied)
    #expect(try Self.decide(OpenPolicy<FirestoreAccess>(), .nobody, .get([name])) == nil)
  }

  @Test("publishing a policy increases its version, and observers are notified before `publish` returns")
  func publication() {
    let slot = PolicySlot<RealtimeAccess>(OpenPolicy())
    let pinned = slot.current
    let seen = Guarded<[UInt64]>([])
    var observation: PolicyObservation? = slot.observe { seen.withLock { $0.append(slot.current.version) } }
    #expect(slot.publish(LockedPolicy()) == 2)
    #expect(pinned.allowsEverything(.nobody) && !slot.current.allowsEverything(.nobody))
    #expect(observation != nil)
    observation = nil
    #expect(slot.publish(OpenPolicy()) == 3)
    #expect(seen.withLock { $0 } == [2])
  }

  @Test("a new default policy applies to all databases except those with a dedicated policy")
  func directory() {
    let directory = PolicyDirectory<RealtimeAccess>(default: LockedPolicy())
    let dedicated = directory.slot(of: "dedicated")
    let other = directory.slot(of: "other")
    directory.publish(OpenPolicy(), for: "dedicated")
    #expect(dedicated.current.allowsEverything(.nobody) && !other.current.allowsEverything(.nobody))
    directory.publishDefault(OpenPolicy())
    directory.publish(LockedPolicy(), for: "dedicated")
    #expect(!dedicated.current.allowsEverything(.nobody) && other.current.allowsEverything(.nobody))
    #expect(directory.slot(of: "new").current.allowsEverything(.nobody))
    directory.publish(nil, for: "dedicated")
    #expect(dedicated.current.allowsEverything(.nobody))
  }
}

@Suite("Policy directory") struct PolicyDirectoryTests {
  /// Counts the slots that exist. Each slot has one observer, which ends with the slot.
  private final class Observer: DecisionObserver {
    let count: Guarded<Int>
    init(_ count: Guarded<Int>) {
      self.count = count
      count.withLock { $0 += 1 }
    }
    deinit { count.withLock { $0 -= 1 } }
    let observesAllowed = false
    func observe(
      _ decision: AccessDecision<FirestoreAccess>, about operation: FirestoreOperation,
      of principal: Principal,
      by policy: any AccessPolicy<FirestoreAccess>, view: (any DocumentView)?
    ) {}
  }

  @Test("the directory releases unused slots, and keeps slots in use and slots with a dedicated policy")
  func unusedSlots() throws {
    let count = Guarded(0)
    let directory = PolicyDirectory<FirestoreAccess>(default: OpenPolicy<FirestoreAccess>()) { _ in
      Observer(count)
    }
    let used = directory.slot(of: DatabaseName(project: "used"))
    directory.publish(LockedPolicy<FirestoreAccess>(), for: DatabaseName(project: "locked"))
    for index in 0..<5000 { _ = directory.slot(of: DatabaseName(project: "p\(index)")) }
    #expect(count.withLock { $0 } <= 1000)
    directory.publishDefault(LockedPolicy<FirestoreAccess>())
    #expect(used.current.policy is LockedPolicy<FirestoreAccess>)
    #expect(
      directory.current(of: DatabaseName(project: "locked")).policy is LockedPolicy<FirestoreAccess>)
  }
}
