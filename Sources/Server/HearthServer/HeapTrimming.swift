// Heap trimming returns freed memory to the system. The GNU C library retains freed memory that is between
// live allocations. Without trimming, a process therefore stays as large as during its largest load.
//
// Invariant: trimming never delays a busy server. The library locks each part of the heap while it trims that
// part. A trim therefore runs only after five seconds of almost no work, and not again before there was more
// work.
//
// Decision: docs/decisions/0016-memory-of-loads.md

import OrderedStore

#if canImport(Glibc)
  internal import CMalloc
  internal import Glibc
#endif

/// The trimming of this process's heap.
enum HeapTrimming {
  /// The time that the process must be idle before a trim, in seconds.
  private static let idleSeconds = 5
  /// The maximum processor time within ``idleSeconds`` of a process that counts as idle, in seconds.
  private static let maximumIdleProcessorSeconds = 0.1
  /// The minimum processor time between two trims, in seconds. After less work there is little to trim.
  private static let minimumWorkProcessorSeconds = 0.5

  /// Trims the heap after each phase of work. Returns when its task is cancelled, and immediately if the
  /// system's allocator returns memory by itself.
  static func run() async {
    #if canImport(Glibc)
      var trimmed = 0.0
      var last = processorSeconds
      while (try? await Task.sleep(for: .seconds(idleSeconds))) != nil {
        let now = processorSeconds
        if now - last < maximumIdleProcessorSeconds, now - trimmed > minimumWorkProcessorSeconds {
          await trim()
          trimmed = processorSeconds
        }
        last = processorSeconds
      }
    #endif
  }

  /// Trims on a dedicated thread, because it may take 0.1 s for each gigabyte.
  static func trim() async {
    #if canImport(Glibc)
      await withCheckedContinuation { continuation in
        _ = DedicatedThread {
          malloc_trim(0)
          continuation.resume()
        }
      }
    #endif
  }

  #if canImport(Glibc)
    /// The processor time of all threads so far, in seconds.
    private static var processorSeconds: Double {
      var time = timespec()
      guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
  #endif
}
