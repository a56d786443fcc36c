// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketIds} from "../../../contracts/libraries/MarketIds.sol";
import {TakerFees} from "../../../contracts/libraries/TakerFees.sol";
import {Test} from "../support/Test.sol";

contract MarketIdsTest is Test {
    function testFuzz_IdIsTheHashOfTheSortedPair(address a, address b) external pure {
        bytes32 expected = keccak256(a < b ? abi.encodePacked(a, b) : abi.encodePacked(b, a));
        assertEq(MarketIds.idOf(a, b), expected, "id");
        assertEq(MarketIds.idOf(b, a), expected, "unordered");
    }

    function test_KnownId() external pure {
        // WETH and USDC at their addresses on chain 8453, hashed by another implementation.
        address weth = 0x4200000000000000000000000000000000000006;
        address usdc = 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913;
        assertEq(MarketIds.idOf(usdc, weth), 0xf4f8ea3842a086279eb37b8946ea63e9704caf38c0cf1c53ffea53d50193f615, "id");
    }
}

contract TakerFeesTest is Test {
    function testFuzz_FeeIsTheFlooredShare(uint256 gross, uint256 rate) external pure {
        gross = bound(gross, 0, 2 ** 236);
        rate = bound(rate, 0, TakerFees.MAX_RATE_PPM);
        uint256 fee = TakerFees.feeOf(gross, rate);
        assertLe(fee * 1e6, gross * rate, "not more");
        assertLe(gross * rate + 1, (fee + 1) * 1e6, "not a unit less");
    }

    function testFuzz_GrossIsTheSmallestThatLeavesNet(uint256 net, uint256 rate) external pure {
        net = bound(net, 0, type(uint128).max);
        rate = bound(rate, 0, TakerFees.MAX_RATE_PPM);
        _check(net, rate);
        _check(net % 1000, rate);
    }

    function test_GrossIsTheSmallestThatLeavesNetForSmallAmounts() external pure {
        for (uint256 net = 0; net < 1000; ++net) {
            _check(net, 10_000);
            _check(net, 9_999);
            _check(net, 1);
        }
    }

    function _check(uint256 net, uint256 rate) private pure {
        uint256 gross = TakerFees.grossFor(net, rate);
        assertEq(gross - TakerFees.feeOf(gross, rate), net, "leaves net");
        if (gross != 0) assertLe(gross - 1 - TakerFees.feeOf(gross - 1, rate) + 1, net, "smallest");
    }
}
