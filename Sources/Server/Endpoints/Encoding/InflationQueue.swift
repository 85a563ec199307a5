// What the requests of one connection have unpacked beside its event loop.
//
// Invariants
//   1. Of one connection one inflation at a time is handed to the threads that do them, and its others wait here: a
//      connection that has many delays one of another's by one.
//   2. Packed bytes are held until they are dropped, and are told to be released then: at once where they were given up
//      before a thread took them, else when that thread has done with them.
//   3. What was given up before a thread took it is not unpacked, and of what was given up nobody hears.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// The inflations of one connection, in order. Confined to its event loop.
final class DecompressionQueue {
  /// The threads that do the inflations of all connections. They start with the first one, and are there until the process
  /// ends. They are few, since each may make a whole message that is not counted before it is handed on; and they do
  /// nothing else, since whoever may send requests can keep them busy.
  static let threads: NIOThreadPool = {
    let threads = NIOThreadPool(numberOfThreads: threadCount)
    threads.start()
    return threads
  }()

  static let threadCount = 2

  /// Bytes to unpack.
  final class Job {
    /// How many they are.
    let bytes: Int
    fileprivate let eventLoop: any EventLoop
    /// Nil once a thread has taken them, or they were given up.
    fileprivate let packed: NIOLockedValueBox<ByteBuffer?>
    fileprivate let packing: CompressionAlgorithm
    fileprivate let limit: Int
    fileprivate var completion: ((Result<ByteBuffer, Decompression.Failure>) -> Void)?
    fileprivate var release: (() -> Void)?

    /// - Parameter completion: is told the outcome on the event loop, unless the job is given up.
    init(
      _ packed: ByteBuffer, _ packing: CompressionAlgorithm, limit: Int, on eventLoop: any EventLoop,
      _ completion: @escaping (Result<ByteBuffer, Decompression.Failure>) -> Void
    ) {
      bytes = packed.readableBytes
      self.packed = NIOLockedValueBox(packed)
      self.packing = packing
      self.limit = limit
      self.eventLoop = eventLoop
      self.completion = completion
    }

    /// Whether the bytes were taken by a thread, or given up.
    var isTaken: Bool { packed.withLockedValue { $0 == nil } }
  }

  private let threads: NIOThreadPool
  private var waiting = CircularBuffer<Job>(initialCapacity: 0)
  private var isBusy = false

  init(_ threads: NIOThreadPool = DecompressionQueue.threads) { self.threads = threads }

  /// Has a job done once those before it are.
  func add(_ job: Job) {
    waiting.append(job)
    startNext()
  }

  /// Gives up a job whose outcome has not been told.
  /// - Parameter release: is called when its packed bytes are not held any more, at once or later on the event loop.
  func giveUp(_ job: Job, _ release: @escaping () -> Void) {
    job.completion = nil
    let isDropped = job.packed.withLockedValue { packed in
      defer { packed = nil }
      return packed != nil
    }
    guard isDropped else {
      job.release = release
      return
    }
    waiting.removeAll { $0 === job }
    release()
  }

  private func startNext() {
    guard !isBusy, let job = waiting.popFirst() else { return }
    isBusy = true
    // The threads hold nothing of a job but these.
    let (box, packing, limit) = (job.packed, job.packing, job.limit)
    let unpacking = threads.runIfActive(eventLoop: job.eventLoop) {
      () -> Result<ByteBuffer, Decompression.Failure> in
      let packed = box.withLockedValue { packed in
        defer { packed = nil }
        return packed
      }
      // Nobody hears of what was given up.
      guard let packed else { return .success(ByteBuffer()) }
      do throws(Decompression.Failure) {
        return .success(try Decompression.unpack(packed, packing, limit: limit))
      } catch {
        return .failure(error)
      }
    }
    unpacking.assumeIsolated().whenComplete { outcome in
      self.end(job, (try? outcome.get()) ?? .failure(.damaged("there is no thread to unpack it")))
    }
  }

  private func end(_ job: Job, _ outcome: Result<ByteBuffer, Decompression.Failure>) {
    isBusy = false
    let (release, completion) = (job.release, job.completion)
    job.release = nil
    job.completion = nil
    startNext()
    release?()
    completion?(outcome)
  }
}
