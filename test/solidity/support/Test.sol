// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice The cheatcodes that these tests use, under the names that Foundry and Hardhat give them.
interface Vm {
    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function assertEq(uint256 left, uint256 right, string calldata what) external pure;
    function assertEq(bytes32 left, bytes32 right, string calldata what) external pure;
    function assertEq(address left, address right, string calldata what) external pure;
    function assertLe(uint256 left, uint256 right, string calldata what) external pure;
    function assertTrue(bool value, string calldata what) external pure;
    function assume(bool condition) external pure;
    function addr(uint256 privateKey) external pure returns (address);
    function computeCreateAddress(address deployer, uint256 nonce) external pure returns (address);
    function expectEmit(address emitter) external;
    function mockCall(address callee, bytes calldata data, bytes calldata answer) external;
    function clearMockedCalls() external;
    function cool(address account) external;
    function etch(address account, bytes calldata code) external;
    function expectRevert(bytes calldata data) external;
    function expectRevert(bytes4 selector) external;
    function expectRevert() external;
    function getCode(string calldata artifact) external view returns (bytes memory creationCode);
    function getNonce(address account) external view returns (uint64);
    function load(address account, bytes32 slot) external view returns (bytes32);
    function lastCallGas() external view returns (Gas memory);
    function prank(address sender) external;
    function snapshotState() external returns (uint256 snapshotId);
    function startPrank(address sender) external;
    function stopPrank() external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function roll(uint256 blockNumber) external;
    function revertToState(uint256 snapshotId) external returns (bool success);
    function setBlockhash(uint256 blockNumber, bytes32 hash) external;
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function store(address account, bytes32 slot, bytes32 value) external;
    function deal(address account, uint256 wei_) external;
    function warp(uint256 timestamp) external;
}

/// @notice What every test here starts from.
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function assertEq(uint256 left, uint256 right, string memory what) internal pure {
        vm.assertEq(left, right, what);
    }

    function assertEq(bytes32 left, bytes32 right, string memory what) internal pure {
        vm.assertEq(left, right, what);
    }

    function assertEq(address left, address right, string memory what) internal pure {
        vm.assertEq(left, right, what);
    }

    function assertLe(uint256 left, uint256 right, string memory what) internal pure {
        vm.assertLe(left, right, what);
    }

    function assertTrue(bool value, string memory what) internal pure {
        vm.assertTrue(value, what);
    }

    /// @dev `value` brought into [low, high], keeping it when it is there already.
    function bound(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        if (value >= low && value <= high) return value;
        uint256 size = high - low;
        return size == type(uint256).max ? value : low + (value % (size + 1));
    }

    /// @dev The next value of a pseudo-random sequence.
    function draw(uint256[1] memory state) internal pure returns (uint256) {
        state[0] = uint256(keccak256(abi.encode(state[0])));
        return state[0];
    }

    function draw(uint256[1] memory state, uint256 low, uint256 high) internal pure returns (uint256) {
        return low + (draw(state) % (high - low + 1));
    }
}
