// Tests the configuration: the log level, and its raw values.

import FirebaseCore
import Testing

@Suite("Configuration", .serialized, .timeLimit(.minutes(10)))
struct FirebaseConfigurationTests {
  @Test("log levels have the raw values of Google's SDK")
  func levels() {
    #expect(FirebaseLoggerLevel.error.rawValue == 3)
    #expect(FirebaseLoggerLevel(rawValue: 7) == .debug)
    #expect(FirebaseLoggerLevel.min == .error)
    #expect(FirebaseLoggerLevel.max == .debug)
    #expect(FirebaseLoggerLevel(rawValue: 9) == nil)
  }

  @Test("the log level is stored")
  func setting() {
    let before = FirebaseConfiguration.shared.loggerLevel()
    FirebaseConfiguration.shared.setLoggerLevel(.debug)
    #expect(FirebaseConfiguration.shared.loggerLevel() == .debug)
    FirebaseConfiguration.shared.setLoggerLevel(before)
    #expect(!FirebaseVersion().isEmpty)
  }
}
