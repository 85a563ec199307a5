// Heap trimming returns freed memory to the system. The GNU C library retains freed memory that is between
// live allocations. Without trimming, a process therefore stays as large as during its largest load.
//
// Trimming locks each part of the heap while it trims that part, about 0.1 s for each gigabyte. It therefore runs only
//   1. after five seconds of almost no work, and again only after more work;
//   2. on a busy server when the process has more than half of the memory that it may use, and again only after it has
//      grown by a sixteenth of that memory. Otherwise the system could end the process.
//
// Decision: docs/decisions/0016-memory-of-loads.md

import OrderedStore

#if canImport(Glibc)
  internal import CMalloc
  internal import Glibc
#endif

/// The trimming of this process's heap.
enum HeapTrimming {
  /// Checks of the resident size in a second. Clients that do not read can make a server grow by 150 MiB in a second.
  private static let ticksPerSecond = 4
  /// The time that the process must be idle before a trim, in seconds.
  private static let idleSeconds = 5
  /// The maximum processor time within ``idleSeconds`` of a process that counts as idle, in seconds.
  private static let maximumIdleProcessorSeconds = 0.1
  /// The minimum processor time between two trims of an idle process, in seconds. After less work there is little to trim.
  private static let minimumWorkProcessorSeconds = 0.5

  /// Trims the heap after each phase of work, and under memory pressure. Returns when its task is cancelled, and
  /// immediately if the system's allocator returns memory by itself.
  /// - Parameter memory: the bytes that this process may use.
  static func run(memory: Int) async {
    #if canImport(Glibc)
      var processorSecondsAtTrim = 0.0
      var last = processorSeconds
      var pressure = MemoryPressure(memory: memory)
      var ticks = 0
      while (try? await Task.sleep(for: .milliseconds(1000 / ticksPerSecond))) != nil {
        ticks += 1
        if pressure.isHigh(resident: residentBytes) {
          await trim()
          pressure.trimmed(to: residentBytes)
        }
        guard ticks % (idleSeconds * ticksPerSecond) == 0 else { continue }
        let now = processorSeconds
        if now - last < maximumIdleProcessorSeconds,
          now - processorSecondsAtTrim > minimumWorkProcessorSeconds
        {
          await trim()
          processorSecondsAtTrim = processorSeconds
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

    /// The resident size of this process in bytes (`statm` in proc(5)); 0 if it is not known.
    private static var residentBytes: Int {
      guard let file = fopen("/proc/self/statm", "r") else { return 0 }
      defer { fclose(file) }
      var bytes = [UInt8](repeating: 0, count: 128)
      let count = fread(&bytes, 1, bytes.count, file)
      let fields = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
      guard fields.count > 1, let pages = Int(fields[1]) else { return 0 }
      return pages * sysconf(Int32(_SC_PAGESIZE))
    }
  #endif
}

/// The resident size at which a busy process trims its heap: half of its memory, and at least a sixteenth of its memory more
/// than after the last trim.
struct MemoryPressure {
  private let memory: Int
  private var residentAfterTrim = 0

  /// - Parameter memory: the bytes that the process may use.
  init(memory: Int) { self.memory = memory }

  /// Whether a process of this size, in bytes, trims its heap.
  func isHigh(resident: Int) -> Bool { resident > max(memory / 2, residentAfterTrim + memory / 16) }

  /// Records the size in bytes after a trim.
  mutating func trimmed(to resident: Int) { residentAfterTrim = resident }
}
