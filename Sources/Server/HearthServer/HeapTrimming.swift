// Gives memory back to the system when there is time. The GNU C library keeps what was freed between allocations that still
// stand: after a large load, listen or flood the process would look as large as it ever was, until it ends.
//
// Invariant: a server that is at work is never held up. Each piece of the heap is locked while it is trimmed, so that it
// is done only after five seconds of next to no work, and once until there is work again.

import OrderedStore

#if canImport(Glibc)
  internal import CMalloc
  internal import Glibc
#endif

/// The trimming of this process's heap.
enum HeapTrimming {
  /// How long the process has to be idle, in seconds.
  private static let interval = 5
  /// Processor time within that, in seconds, up to which it counts as idle.
  private static let idle = 0.1
  /// Processor time since the last trimming from which on there may be something to give back, in seconds.
  private static let work = 0.5

  /// Trims whenever there was work and then none. Returns when its task is cancelled, and at once where the system's
  /// allocator gives memory back by itself.
  static func run() async {
    #if canImport(Glibc)
      var trimmed = 0.0
      var last = processorSeconds
      while (try? await Task.sleep(for: .seconds(interval))) != nil {
        let now = processorSeconds
        if now - last < idle, now - trimmed > work {
          await trim()
          trimmed = processorSeconds
        }
        last = processorSeconds
      }
    #endif
  }

  /// Gives back what is free, on a thread of its own: it may take a tenth of a second for a gigabyte.
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
