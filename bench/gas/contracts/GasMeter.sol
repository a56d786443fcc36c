// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Measures the gas of executing a view: the callee's account is warm and everything else is cold, as in a transaction sent to it.
contract GasMeter {
    /// @return gasUsed Of the call alone.
    /// @return answer What it returned. Reverts if it fails.
    function measure(address target, bytes calldata data) external view returns (uint256 gasUsed, bytes memory answer) {
        bytes memory input = data;
        bool ok;
        // A transaction that is sent to an account has it warm; a contract that calls it for the first time pays 2,500 more.
        require(target.code.length != 0);
        // Same as target.staticcall(input) between two readings of gasleft(), without copying the answer in between.
        assembly ("memory-safe") {
            let before := gas()
            ok := staticcall(gas(), target, add(input, 32), mload(input), 0, 0)
            gasUsed := sub(before, gas())
            answer := mload(0x40)
            mstore(answer, returndatasize())
            returndatacopy(add(answer, 32), 0, returndatasize())
            mstore(0x40, and(add(add(answer, returndatasize()), 63), not(31)))
        }
        require(ok);
    }
}
