// Tests which events end an operation's wait for an index build: the completed build, the end of its
// connection, and the shutdown. Each of these events returns the operation to the queue.

import Access
import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Operations that wait for an index", .timeLimit(.minutes(2)))
struct IndexBuildWaitersTests {
  private let queue = OperationQueue()
  private let connection = ConnectionState(
    name: "phone", caller: .nobody, sink: RecordingSink(RecordingGroup()))

  private func operation(_ action: RealtimeOperation.Action) -> RealtimeOperation {
    RealtimeOperation(action, from: .connection(connection, request: nil))
  }

  /// Defers a read until an index is built. A later write of the same connection is blocked behind the read.
  private func deferRead(_ waiters: IndexBuildWaiters) {
    let read = operation(.get("l", .default)).deferred(.indexBuild)
    queue.hold([read, operation(.write(.set("x", 1), hash: nil)).blocked])
    waiters.add(read)
  }

  @Test("A completed build resumes the waiting operation and the connection's later requests")
  func completed() async throws {
    let waiters = IndexBuildWaiters(queue)
    deferRead(waiters)
    queue.wake()
    #expect(try #require(await queue.next()).isEmpty)
    waiters.resumeAll()
    let batch = try #require(await queue.next())
    #expect(batch.count == 2)
    #expect(batch.allSatisfy { $0.isQueued })
    #expect(batch[0].results.hasAwaitedIndex)
    #expect(batch[0].results.location == nil)
  }

  @Test("A closed connection's later requests do not wait for the index")
  func closedConnection() async throws {
    let waiters = IndexBuildWaiters(queue)
    deferRead(waiters)
    _ = connection.markClosed()
    #expect(queue.append(operation(.close)))
    waiters.resumeAbandoned()
    let batch = try #require(await queue.next())
    // The batch holds the write and the close. The read is dropped, because nobody can receive its result.
    #expect(batch.count == 2)
    #expect(batch.last?.endsSession == true)
  }

  @Test("An operation of a closed connection does not wait for an index")
  func closedBefore() async throws {
    _ = connection.markClosed()
    deferRead(IndexBuildWaiters(queue))
    #expect(try #require(await queue.next()).count == 1)
  }

  @Test("After a shutdown an operation fails instead of waiting for an index")
  func stopped() async throws {
    let waiters = IndexBuildWaiters(queue)
    waiters.stop()
    deferRead(waiters)
    let batch = try #require(await queue.next())
    #expect(batch.count == 2)
    guard case .failure(.abandoned)? = batch[0].results.location else {
      return #expect(Bool(false), "the operation did not fail")
    }
    queue.close()
    #expect(await queue.next() == nil)
  }
}
