import Foundation
import Testing

// Durability tests of the embedded store. They run `hearth-crash`, whose children, power cuts and faults are in
// Tests/PowerCut, and check the lines that it prints for the operator.
#if os(Linux)
  @Suite("Durability of the embedded store", .serialized)
  struct DurabilityTests {
    @Test("50 power cuts lose and tear no acknowledged transaction", .timeLimit(.minutes(10)))
    func powerCuts() async throws {
      let run = try await CrashProgram.run("cuts", "50", "--seed", "1")
      #expect(run.status == 0, "\(run.output)")
      #expect(run.output.contains("0 lost, 0 torn"), "\(run.output)")
    }

    @Test("Power cuts without sync lose transactions, and the test detects it", .timeLimit(.minutes(10)))
    func powerCutsWithoutSync() async throws {
      let run = try await CrashProgram.run("cuts", "8", "--seed", "1", "--no-sync")
      #expect(run.status == 1, "\(run.output)")
      #expect(run.output.contains("sync off") && !run.output.contains(": 0 lost"), "\(run.output)")
    }

    @Test(
      "After the n-th write or sync failed, nothing is acknowledged, reads succeed and nothing is lost",
      .timeLimit(.minutes(10)))
    func failingWritesAndSyncs() async throws {
      async let writes = CrashProgram.run("faults", "write", "1", "200")
      async let syncs = CrashProgram.run("faults", "sync", "1", "200")
      for run in [try await writes, try await syncs] {
        #expect(run.status == 0, "\(run.output)")
        #expect(run.output.contains("0 problems"), "\(run.output)")
      }
    }

    @Test(
      "A full disk fails writes with a clear message, reads succeed and nothing is lost",
      .timeLimit(.minutes(10)))
    func fullDisk() async throws {
      let run = try await CrashProgram.run("full")
      if run.output.contains("skipped") { print(run.output) }
      #expect(run.status == 0, "\(run.output)")
    }
  }

  /// The program `hearth-crash`, built next to the tests.
  enum CrashProgram {
    static func run(_ arguments: String...) async throws -> (status: Int32, output: String) {
      let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
      let directory = URL(fileURLWithPath: own).deletingLastPathComponent()
      let process = Process()
      process.executableURL = directory.appendingPathComponent("hearth-crash")
      process.arguments = arguments
      let pipe = Pipe()
      process.standardOutput = pipe
      process.standardError = pipe
      return try await withCheckedThrowingContinuation { continuation in
        // A dedicated thread, because reading to the end blocks.
        Thread.detachNewThread {
          continuation.resume(
            with: Result {
              try process.run()
              let output = pipe.fileHandleForReading.readDataToEndOfFile()
              process.waitUntilExit()
              return (process.terminationStatus, String(decoding: output, as: UTF8.self))
            })
        }
      }
    }
  }
#endif
