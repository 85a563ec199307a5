// Tests the publishers and futures for Combine, with a real server and offline.

import FirebaseFirestore
import FirebaseFirestoreCombineSwift
import Foundation
import Testing

#if canImport(Combine)
  import Combine
#else
  import OpenCombine
#endif

/// Waits for a future's result.
private func value<T: Sendable>(of future: Future<T, any Error>) async throws -> T {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<T, any Error>) in
    future.subscribe(
      Subscribers.Sink(
        receiveCompletion: { if case .failure(let error) = $0 { continuation.resume(throwing: error) } },
        receiveValue: { continuation.resume(returning: $0) }))
  }
}

/// Requests snapshots when the test calls for them, and rebuilds the documents from the changes.
private final class StepSubscriber: Subscriber {
  typealias Input = QuerySnapshot
  typealias Failure = any Error

  let received = Recorder<[String]>()
  let failures = Recorder<Int>()
  private(set) var subscription: (any Subscription)?
  private let rebuilt = Locked<Set<String>>([])
  /// Whether each snapshot arrived on the expected thread.
  let isExpectedThread = Recorder<Bool>()
  private let checkThread: @Sendable () -> Bool

  init(checkThread: @escaping @Sendable () -> Bool = { true }) { self.checkThread = checkThread }

  func receive(subscription: any Subscription) { self.subscription = subscription }

  func receive(_ snapshot: QuerySnapshot) -> Subscribers.Demand {
    let rebuilt = rebuilt.change { documents in
      for change in snapshot.documentChanges {
        if change.type == .removed {
          documents.remove(change.document.documentID)
        } else {
          documents.insert(change.document.documentID)
        }
      }
      return documents
    }
    let documents = snapshot.documents.map(\.documentID)
    isExpectedThread.add(checkThread())
    received.add(rebuilt == Set(documents) ? documents : ["the changes do not match"])
    return .none
  }

  func receive(completion: Subscribers.Completion<any Error>) {
    if case .failure(let error) = completion { failures.add((error as NSError).code) }
  }
}

/// Cancels its subscription when it is released, like a subscriber that belongs to a view.
private final class CancellingSubscriber: Subscriber {
  typealias Input = QuerySnapshot
  typealias Failure = any Error

  private let released: Recorder<Bool>
  private(set) var subscription: (any Subscription)?

  init(_ released: Recorder<Bool>) { self.released = released }

  deinit {
    subscription?.cancel()
    released.add(true)
  }

  func receive(subscription: any Subscription) { self.subscription = subscription }
  func receive(_ snapshot: QuerySnapshot) -> Subscribers.Demand { .none }
  func receive(completion: Subscribers.Completion<any Error>) {}
}

private struct RatedBook: Codable {
  var title: String
  var rating = 1.0
}

private struct BlockError: Error, Equatable {}

@Suite("Combine publishers", .timeLimit(.minutes(2))) struct PublisherTests {
  @Test("writes and reads complete their futures with the server's response")
  func futures() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let books = client.collection("books")
      let emma = books.document("emma")
      try await value(of: emma.setData(["title": "Emma"]))
      try await value(of: emma.setData(["pages": 474], merge: true))
      try await value(of: emma.setData(["pages": 1, "year": 1815], mergeFields: ["year"]))
      try await value(of: emma.updateData(["seen": true]))
      let read = try await value(of: emma.getDocument(source: .server))
      #expect(read.get("title") as? String == "Emma" && read.get("pages") as? Int == 474)
      #expect(read.get("year") as? Int == 1815 && read.get("seen") as? Bool == true)
      try await value(of: emma.setData(from: RatedBook(title: "Persuasion")))
      try await value(of: emma.setData(from: RatedBook(title: "Emma", rating: 2), mergeFields: ["rating"]))
      try await value(of: emma.setData(from: RatedBook(title: "Emma", rating: 2), merge: true))
      let encodedOnce = try await value(of: emma.getDocument())
      #expect(encodedOnce.data()?.count == 2 && encodedOnce.get("rating") as? Double == 2)
      let added = try await value(of: books.addDocument(data: ["title": "Dune"]))
      let encoded = try await value(of: books.addDocument(from: RatedBook(title: "Solaris")))
      let all = try await value(of: books.getDocuments(source: .server))
      #expect(Set(all.documents.map(\.documentID)) == ["emma", added.documentID, encoded.documentID])
      let batch = client.batch().deleteDocument(added).deleteDocument(encoded)
      try await value(of: batch.commit())
      try await value(of: emma.delete())
      #expect(try await value(of: books.getDocuments()).isEmpty)
      try await client.terminate()
    }
  }

  @Test("rejected writes, absent documents and values that cannot be encoded fail their futures")
  func failures() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let absent = client.document("books/none")
      await #expect { try await value(of: absent.updateData(["n": 1])) } throws: {
        ($0 as NSError).code == FirestoreErrorCode.notFound.rawValue
      }
      let unencodable = RatedBook(title: "odd", rating: .nan)
      await #expect(throws: EncodingError.self) { try await value(of: absent.setData(from: unencodable)) }
      await #expect(throws: EncodingError.self) {
        try await value(of: client.collection("books").addDocument(from: unencodable))
      }
      try await client.disableNetwork()
      await #expect { try await value(of: absent.getDocument(source: .server)) } throws: {
        ($0 as NSError).code == FirestoreErrorCode.unavailable.rawValue
      }
      try await client.terminate()
    }
  }

  @Test("a transaction's future has the result of the block, or the error that the block threw")
  func transactions() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let counter = client.document("counters/visits")
      for expected in 1...2 {
        let count = try await value(
          of: client.runTransaction { transaction -> Int in
            let count = (try transaction.getDocument(counter).get("n") as? Int ?? 0) + 1
            transaction.setData(["n": count], forDocument: counter)
            return count
          })
        #expect(count == expected)
      }
      await #expect(throws: BlockError()) {
        try await value(of: client.runTransaction { _ -> Int in throw BlockError() })
      }
      try await client.terminate()
    }
  }

  @Test("each subscriber receives the current snapshot first, and no snapshot after it has cancelled")
  func subscribers() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let books = client.collection("books")
      let publisher = books.snapshotPublisher(includeMetadataChanges: true)
      let (first, second, document) = (Recorder<[String]>(), Recorder<[String]>(), Recorder<Int>())
      let ids = { @Sendable (snapshot: QuerySnapshot) in snapshot.documents.map(\.documentID) }
      let one = publisher.map(ids).sink(receiveCompletion: { _ in }, receiveValue: first.add)
      put(books.document("a"), ["n": 1])
      _ = try await first.first { $0 == ["a"] }
      let two = publisher.map(ids).sink(receiveCompletion: { _ in }, receiveValue: second.add)
      let three = books.document("a").snapshotPublisher()
        .compactMap { $0.get("n") as? Int }
        .sink(receiveCompletion: { _ in }, receiveValue: document.add)
      #expect(try await second.first { _ in true } == ["a"])
      #expect(try await document.first { _ in true } == 1)
      one.cancel()
      let count = first.all.count
      put(books.document("b"), ["n": 2])
      _ = try await second.first { $0 == ["a", "b"] }
      #expect(first.all.count == count)
      two.cancel()
      three.cancel()
      try await client.terminate()
    }
  }

  @Test("snapshots are queued in order until the subscriber requests them")
  func demand() async throws {
    let client = TestClient.make(port: 1)
    try await client.disableNetwork()
    let books = client.collection("books")
    let subscriber = StepSubscriber()
    books.snapshotPublisher().subscribe(subscriber)
    let all = Recorder<Int>()
    let listener = books.addSnapshotListener { snapshot, _ in all.add(snapshot?.count ?? -1) }
    for number in 1...3 {
      put(books.document("b\(number)"), ["n": number])
      _ = try await all.first { $0 == number }
    }
    #expect(subscriber.received.all.isEmpty)
    let subscription = try #require(subscriber.subscription)
    subscription.request(.max(1))
    let first = try await subscriber.received.first { _ in true }
    #expect(subscriber.received.all == [first] && first.count < 3)
    subscription.request(.unlimited)
    _ = try await subscriber.received.first { $0 == ["b1", "b2", "b3"] }
    subscription.cancel()
    put(books.document("b4"), ["n": 4])
    _ = try await all.first { $0 == 4 }
    #expect(subscriber.received.all.last == ["b1", "b2", "b3"])
    listener.remove()
    try await client.terminate()
  }

  @Test("snapshots arrive on the settings' queue, even if another thread requests them")
  func deliveryQueue() async throws {
    let queue = DispatchQueue(label: "snapshots")
    let key = DispatchSpecificKey<Bool>()
    queue.setSpecific(key: key, value: true)
    let client = TestClient.make(port: 1, queue: queue)
    try await client.disableNetwork()
    let books = client.collection("books")
    let subscriber = StepSubscriber { DispatchQueue.getSpecific(key: key) == true }
    books.snapshotPublisher().subscribe(subscriber)
    let all = Recorder<Int>()
    let listener = books.addSnapshotListener { snapshot, _ in all.add(snapshot?.count ?? -1) }
    for number in 1...3 {
      put(books.document("b\(number)"), ["n": number])
      _ = try await all.first { $0 == number }
    }
    let subscription = try #require(subscriber.subscription)
    for _ in 1...2 { subscription.request(.max(1)) }
    subscription.request(.unlimited)
    _ = try await subscriber.received.first { $0 == ["b1", "b2", "b3"] }
    #expect(subscriber.isExpectedThread.all.allSatisfy { $0 })
    subscription.cancel()
    listener.remove()
    try await client.terminate()
  }

  @Test("cancelling a subscription releases its subscriber, even if that cancels again in its deinitializer")
  func cancelOnRelease() async throws {
    let client = TestClient.make(port: 1)
    try await client.disableNetwork()
    let released = Recorder<Bool>()
    func subscribe() -> (any Subscription)? {
      let subscriber = CancellingSubscriber(released)
      client.collection("books").snapshotPublisher().subscribe(subscriber)
      return subscriber.subscription
    }
    let subscription = subscribe()
    #expect(subscription != nil && released.all.isEmpty)
    subscription?.cancel()
    #expect(released.all == [true])
    try await client.terminate()
  }

  @Test("the error of a listener fails the publisher")
  func deniedListener() async throws {
    let rules = """
      service cloud.firestore {
        match /databases/{database}/documents/{document=**} { allow read: if false; }
      }
      """
    try await withServer(rules: rules) { _, port in
      let client = TestClient.make(port: port)
      let subscriber = StepSubscriber()
      client.collection("books").snapshotPublisher().subscribe(subscriber)
      #expect(
        try await subscriber.failures.first { _ in true } == FirestoreErrorCode.permissionDenied.rawValue)
      try await client.terminate()
    }
  }
}
