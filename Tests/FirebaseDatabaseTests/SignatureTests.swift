// Tests the signatures of public declarations: they have the types that apps rely on. Compiling this file is
// the test.

import Dispatch
import FirebaseCore
import FirebaseDatabase
import FirebaseSharedSwift
import Foundation
import Testing

private typealias Completion = @Sendable ((any Error)?, DatabaseReference) -> Void
private typealias Block = (DataSnapshot) -> Void
private typealias SiblingBlock = (DataSnapshot, String?) -> Void
private typealias Cancel = (any Error) -> Void

@Suite("Signatures")
struct SignatureTests {
  @Test("database declarations")
  func databases() {
    let _: () -> Database = Database.database
    let _: (String) -> Database = Database.database(url:)
    let _: (FirebaseApp) -> Database = Database.database(app:)
    let _: (FirebaseApp, String) -> Database = Database.database(app:url:)
    let _: (Bool) -> Void = Database.setLoggingEnabled
    let _: () -> String = Database.sdkVersion
    let _: (Database) -> () -> DatabaseReference = Database.reference
    let _: (Database) -> (String) -> DatabaseReference = Database.reference(withPath:)
    let _: (Database) -> (String) -> DatabaseReference = Database.reference(fromURL:)
    let _: (Database) -> (String, Int) -> Void = Database.useEmulator(withHost:port:)
    let _: [(Database) -> () -> Void] = [
      Database.purgeOutstandingWrites, Database.goOffline, Database.goOnline,
    ]
    let _: KeyPath<Database, FirebaseApp?> = \.app
    let _: ReferenceWritableKeyPath<Database, Bool> = \.isPersistenceEnabled
    let _: ReferenceWritableKeyPath<Database, UInt> = \.persistenceCacheSizeBytes
    let _: ReferenceWritableKeyPath<Database, DispatchQueue> = \.callbackQueue
    let _: Database.Encoder = Database.Encoder()
    let _: Database.Decoder = Database.Decoder()
  }

  @Test("query declarations")
  func queries() {
    typealias Q = DatabaseQuery
    let _: (Q) -> (DataEventType, @escaping Block, Cancel?) -> DatabaseHandle = Q.observe(_:with:withCancel:)
    let _: (Q) -> (DataEventType, @escaping SiblingBlock, Cancel?) -> DatabaseHandle =
      Q.observe(_:andPreviousSiblingKeyWith:withCancel:)
    let _: (Q) -> (DataEventType, @escaping Block, Cancel?) -> Void = Q.observeSingleEvent(
      of:with:withCancel:)
    let _: (Q) -> (DataEventType, @escaping SiblingBlock, Cancel?) -> Void =
      Q.observeSingleEvent(of:andPreviousSiblingKeyWith:withCancel:)
    let _: (Q) -> (DataEventType) async -> (DataSnapshot, String?) = Q.observeSingleEventAndPreviousSiblingKey
    let _: (Q) -> (@escaping @Sendable ((any Error)?, DataSnapshot?) -> Void) -> Void = Q.getData(completion:)
    let _: (Q) -> () async throws -> DataSnapshot = Q.getData
    let _: (Q) -> (UInt) -> Void = Q.removeObserver(withHandle:)
    let _: (Q) -> () -> Void = Q.removeAllObservers
    let _: (Q) -> (Bool) -> Void = Q.keepSynced
    let _: [(Q) -> (UInt) -> Q] = [Q.queryLimited(toFirst:), Q.queryLimited(toLast:)]
    let _: (Q) -> (String) -> Q = Q.queryOrdered(byChild:)
    let _: [(Q) -> () -> Q] = [Q.queryOrderedByKey, Q.queryOrderedByValue, Q.queryOrderedByPriority]
    let _: [(Q) -> (Any?) -> Q] = [
      Q.queryStarting(atValue:), Q.queryStarting(afterValue:), Q.queryEnding(atValue:),
      Q.queryEnding(beforeValue:),
      Q.queryEqual(toValue:),
    ]
    let _: [(Q) -> (Any?, String?) -> Q] = [
      Q.queryStarting(atValue:childKey:), Q.queryStarting(afterValue:childKey:),
      Q.queryEnding(atValue:childKey:),
      Q.queryEnding(beforeValue:childKey:), Q.queryEqual(toValue:childKey:),
    ]
    let _: KeyPath<Q, DatabaseReference> = \.ref
  }

  /// Call sites of the guides, with and without labels of trailing closures.
  func callSites(_ ref: DatabaseReference) async throws {
    let handle: DatabaseHandle = ref.observe(.value) { snapshot in _ = snapshot.value }
    ref.observe(.childAdded) { snapshot, previous in _ = (snapshot, previous) }
    ref.observe(.childMoved, with: { _ in }) { error in _ = error.localizedDescription }
    ref.observe(.value) { _ in
    } withCancel: { _ in
    }
    ref.observeSingleEvent(of: .value) { _ in }
    ref.observeSingleEvent(of: .childRemoved) { _, _ in }
    ref.removeObserver(withHandle: handle)
    _ = ref.queryLimited(toFirst: handle)
    let (snapshot, _) = await ref.observeSingleEventAndPreviousSiblingKey(of: .value)
    for case let child as DataSnapshot in snapshot.children { _ = child.key }
    _ = snapshot.children.allObjects as? [DataSnapshot]
    _ = ServerValue.timestamp() as? [String: String]
    let (isCommitted, after): (Bool, DataSnapshot) = try await ref.runTransactionBlock {
      .success(withValue: $0)
    }
    _ = (isCommitted, after)
  }

  @Test("reference declarations")
  func references() {
    typealias R = DatabaseReference
    let _: (R) -> (String) -> R = R.child
    let _: (R) -> () -> R = R.childByAutoId
    let _: [(R) -> (Any?) -> Void] = [R.setValue(_:), R.setPriority(_:), R.onDisconnectSetValue(_:)]
    let _: [(R) -> (Any?, @escaping Completion) -> Void] = [
      R.setValue(_:withCompletionBlock:), R.setPriority(_:withCompletionBlock:),
      R.onDisconnectSetValue(_:withCompletionBlock:),
    ]
    let _: [(R) -> (Any?) async throws -> R] = [
      R.setValue(_:), R.setPriority(_:), R.onDisconnectSetValue(_:),
    ]
    let _: (R) -> (Any?, Any?) -> Void = R.setValue(_:andPriority:)
    let _: (R) -> (Any?, Any) -> Void = R.onDisconnectSetValue(_:andPriority:)
    let _: [(R) -> (Any?, Any?, @escaping Completion) -> Void] = [
      R.setValue(_:andPriority:withCompletionBlock:),
      R.onDisconnectSetValue(_:andPriority:withCompletionBlock:),
    ]
    let _: [(R) -> (Any?, Any?) async throws -> R] = [
      R.setValue(_:andPriority:), R.onDisconnectSetValue(_:andPriority:),
    ]
    let _: [(R) -> () -> Void] = [R.removeValue, R.onDisconnectRemoveValue, R.cancelDisconnectOperations]
    let _: [(R) -> (@escaping Completion) -> Void] = [
      R.removeValue(completionBlock:), R.onDisconnectRemoveValue(completionBlock:),
    ]
    let _: (R) -> (Completion?) -> Void = R.cancelDisconnectOperations(completionBlock:)
    let _: [(R) -> () async throws -> R] = [
      R.removeValue, R.onDisconnectRemoveValue, R.cancelDisconnectOperations,
    ]
    let _: [(R) -> ([AnyHashable: Any]) -> Void] = [
      R.updateChildValues(_:), R.onDisconnectUpdateChildValues(_:),
    ]
    let _: [(R) -> ([AnyHashable: Any], @escaping Completion) -> Void] = [
      R.updateChildValues(_:withCompletionBlock:), R.onDisconnectUpdateChildValues(_:withCompletionBlock:),
    ]
    let _: [(R) -> ([AnyHashable: Any]) async throws -> R] = [
      R.updateChildValues(_:), R.onDisconnectUpdateChildValues(_:),
    ]
    let _: (R) -> (@escaping (MutableData) -> TransactionResult) -> Void = R.runTransactionBlock(_:)
    let _:
      (R) -> (
        @escaping (MutableData) -> TransactionResult,
        @escaping @Sendable ((any Error)?, Bool, DataSnapshot?) -> Void
      ) -> Void = R.runTransactionBlock(_:andCompletionBlock:)
    let _: (R) -> (@escaping (MutableData) -> TransactionResult) async throws -> (Bool, DataSnapshot) =
      R.runTransactionBlock(_:)
    let _:
      (R) -> (
        @escaping (MutableData) -> TransactionResult, (((any Error)?, Bool, DataSnapshot?) -> Void)?, Bool
      ) -> Void = R.runTransactionBlock(_:andCompletionBlock:withLocalEvents:)
    let _: [() -> Void] = [R.goOffline, R.goOnline]
    let _: (R) -> () -> String = R.description
    let _: KeyPath<R, R?> = \.parent
    let _: KeyPath<R, R> = \.root
    let _: KeyPath<R, String?> = \.key
    let _: KeyPath<R, String> = \.url
    let _: KeyPath<R, Database> = \.database
  }

  @Test("declarations of snapshots, mutable data, results, server values and event types")
  func values() {
    typealias S = DataSnapshot
    typealias M = MutableData
    let _: (S) -> (String) -> S = S.childSnapshot(forPath:)
    let _: (S) -> (String) -> Bool = S.hasChild
    let _: [(S) -> () -> Bool] = [S.hasChildren, S.exists]
    let _: (S) -> () -> Any? = S.valueInExportFormat
    let _: [KeyPath<S, Any?>] = [\.value, \.priority]
    let _: KeyPath<S, UInt> = \.childrenCount
    let _: KeyPath<S, DatabaseReference> = \.ref
    let _: KeyPath<S, String> = \.key
    let _: KeyPath<S, NSEnumerator> = \.children
    let _: (M) -> () -> Bool = M.hasChildren
    let _: (M) -> (String) -> Bool = M.hasChild(atPath:)
    let _: (M) -> (String) -> M = M.childData(byAppendingPath:)
    let _: [ReferenceWritableKeyPath<M, Any?>] = [\.value, \.priority]
    let _: KeyPath<M, UInt> = \.childrenCount
    let _: KeyPath<M, NSEnumerator> = \.children
    let _: KeyPath<M, String?> = \.key
    let _: (M) -> TransactionResult = TransactionResult.success(withValue:)
    let _: () -> TransactionResult = TransactionResult.abort
    let _: () -> [AnyHashable: Any] = ServerValue.timestamp
    let _: (NSNumber) -> [AnyHashable: Any] = ServerValue.increment
    #expect(ServerValue.timestamp() as? [String: String] == [".sv": "timestamp"])
    #expect(
      [DataEventType.childAdded, .childRemoved, .childChanged, .childMoved, .value].map(\.rawValue) == [
        0, 1, 2, 3, 4,
      ])
  }
}

/// A reference that records calls instead of writing. Tests of apps replace references in this way.
private final class RecordingReference: DatabaseReference, @unchecked Sendable {
  private(set) var calls: [String] = []

  override init() { super.init() }

  override func child(_ pathString: String) -> DatabaseReference {
    calls.append("child \(pathString)")
    return self
  }

  override func setValue(_ value: Any?) { calls.append("set") }

  override func setValue(_ value: Any?) async throws -> DatabaseReference {
    calls.append("set and wait")
    return self
  }

  override func updateChildValues(
    _ values: [AnyHashable: Any],
    withCompletionBlock block: @escaping @Sendable ((any Error)?, DatabaseReference) -> Void
  ) {
    calls.append("update")
    block(nil, self)
  }

  override func onDisconnectRemoveValue() { calls.append("onDisconnect") }

  override func queryLimited(toFirst limit: UInt) -> DatabaseQuery {
    calls.append("limit")
    return self
  }

  override func observe(
    _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
    withCancel cancelBlock: ((any Error) -> Void)? = nil
  ) -> DatabaseHandle {
    calls.append("observe")
    block(RecordedSnapshot())
    return 1
  }

  override func runTransactionBlock(_ block: @escaping (MutableData) -> TransactionResult) {
    calls.append("transaction \(block(RecordedData()) is RecordedResult)")
  }
}

private final class RecordedSnapshot: DataSnapshot, @unchecked Sendable {
  override init() { super.init() }
  override var value: Any? { "recorded" }
}

private final class RecordedData: MutableData {
  override var childrenCount: UInt { 7 }
}

private final class RecordedResult: TransactionResult {}

private final class RecordedQuery: DatabaseQuery, @unchecked Sendable {
  override func queryOrderedByKey() -> DatabaseQuery { self }
}

extension SignatureTests {
  @Test("apps subclass references, queries, snapshots, data and results, and override their methods")
  func subclasses() async throws {
    let reference = RecordingReference()
    func useSynchronously(_ reference: DatabaseReference) {
      reference.child("a").setValue(1)
      reference.updateChildValues(["a": 1]) { error, _ in #expect(error == nil) }
      reference.onDisconnectRemoveValue()
      reference.queryLimited(toFirst: 1).observe(.value, with: { #expect($0.value as? String == "recorded") })
      reference.runTransactionBlock { data in
        #expect(data.childrenCount == 7)
        return RecordedResult()
      }
    }
    useSynchronously(reference)
    let base: DatabaseReference = reference
    try await base.setValue(2)
    #expect(
      reference.calls == [
        "child a", "set", "update", "onDisconnect", "limit", "observe", "transaction true", "set and wait",
      ])
    let query = RecordedQuery()
    #expect(query.queryOrderedByKey() === query)
  }
}
