// Tests the durability of the embedded store by simulated power cuts and disk faults.
//
// The tests run the program `hearth-crash` (Tests/PowerCut), which simulates the faults in child processes, and check
// the lines that it prints.

import Foundation
import Testing

#if os(Linux)
  @Suite("Durability of the embedded store", .serialized)
  struct DurabilityTests {
    @Test("After 50 power cuts every acknowledged transaction is complete", .timeLimit(.minutes(10)))
    func powerCuts() async throws {
      let run = try await CrashProgram.run("cuts", "50", "--seed", "1")
      #expect(run.status == 0, "\(run.output)")
      #expect(run.output.contains("0 lost, 0 torn"), "\(run.output)")
    }

    @Test(
      "With syncs disabled, power cuts lose transactions and hearth-crash detects it",
      .timeLimit(.minutes(10)))
    func powerCutsWithoutSync() async throws {
      let run = try await CrashProgram.run("cuts", "8", "--seed", "1", "--no-sync")
      #expect(run.status == 1, "\(run.output)")
      #expect(run.output.contains("sync off") && !run.output.contains(": 0 lost"), "\(run.output)")
    }

    @Test(
      "After a failed write or sync, no write is acknowledged, reads succeed, and no acknowledged write is lost",
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
      "On a full disk writes fail with a clear message, reads succeed, and no acknowledged write is lost",
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
        // Reading to the end blocks, so it runs on a dedicated thread.
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
